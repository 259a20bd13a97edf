// Reads the calls of many sessions, a JSON object a line, and lets porcupine look for an order of each session's calls
// that explains all of their answers. Prints a line for each session that has none, and exits with 1 when there is one.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A call of one session. Times are microseconds of one clock; Return is 0 for a call whose outcome is unknown: it may
// still take effect at any later time, once or not at all.
type call struct {
	Session string
	Call    string
	Begin   int64
	Return  int64
	Input   struct {
		Id      string // under which the caller knows the session
		Value   string
		Name    string
		Timeout int64 // seconds; 0: longer than a history
	}
	Output struct {
		Outcome   string
		Found     bool
		Id        string
		A         string
		N         int
		Principal string
	}
}

// A session, from its creation on.
type state struct {
	exists    bool
	alive     bool
	id        string
	former    string // ids whose changes are forwarded, each with a blank around it
	closed    string // ids that led here before a change of the principal
	a         string
	n         int
	principal string
	timeout   int64
	// When it was renewed: not before the first, and not after the second.
	renewedFrom, renewedTo int64
}

// What the clocks of Redis and of the recorder may differ by, and the millisecond that Redis counts in.
const slack = 5_000

const timeToDecide = 30 * time.Second

func (c call) isUnknown() bool { return c.Return == 0 }

func (c call) end() int64 {
	if c.isUnknown() {
		return math.MaxInt64
	}
	return c.Return
}

// Alive, ended by its timeout, or either, at the time of the call.
func (s state) atTimeOf(c call) []state {
	if !s.alive || s.timeout == 0 {
		return []state{s}
	}
	var states []state
	if c.Begin <= s.renewedTo+s.timeout+slack {
		states = append(states, s)
	}
	if c.end() >= s.renewedFrom+s.timeout-slack {
		s.alive = false
		states = append(states, s)
	}
	return states
}

func (s state) reaches(id string) bool {
	return s.alive && (id == s.id || strings.Contains(s.former, " "+id+" "))
}

func (s state) renewed(c call) state {
	s.renewedFrom, s.renewedTo = c.Begin, c.end()
	if c.isUnknown() {
		s.renewedTo = math.MaxInt64 / 2
	}
	return s
}

func (s state) rotated(to string) state {
	s.former += " " + s.id + " "
	s.id = to
	return s
}

// The change that a call makes, and whether it can be made.
func (s state) changed(c call) (state, bool) {
	in, out := c.Input, c.Output
	switch c.Call {
	case "create":
		next := state{exists: true, alive: true, id: out.Id, a: "first", timeout: in.Timeout * 1_000_000}
		return next.renewed(c), !s.exists
	case "set":
		next := s
		next.a = in.Value
		return next.renewed(c), s.reaches(in.Id)
	case "add":
		next := s
		next.n++
		return next.renewed(c), s.reaches(in.Id) && (c.isUnknown() || out.N == next.n)
	case "rotate":
		return s.rotated(out.Id).renewed(c), s.alive && in.Id == s.id
	case "signIn":
		next := s.rotated(out.Id)
		if in.Name != s.principal {
			next.closed, next.former = s.closed+next.former, "" // nothing crosses a sign-in
			if s.principal != "" {
				next.a, next.n = "", 0
			}
		}
		next.principal = in.Name
		return next.renewed(c), s.alive && in.Id == s.id
	case "end":
		next := s
		next.alive = false
		return next, s.reaches(in.Id)
	case "endAll":
		next := s
		next.alive = false
		return next, s.alive && s.principal == in.Name
	}
	panic("no call " + c.Call)
}

// Whether the answer of a call that changes nothing is true.
func (s state) answers(c call) bool {
	in, out := c.Input, c.Output
	isShown := out.A == s.a && out.N == s.n && out.Principal == s.principal
	switch c.Call {
	case "load":
		isFound := s.alive && in.Id == s.id
		return out.Found == isFound && (!isFound || isShown)
	case "list":
		isListed := s.alive && s.principal == in.Name
		return out.Found == isListed && (!isListed || out.Id == s.id)
	case "ended":
		return s.exists && !s.alive && isShown
	}
	panic("no answer of " + c.Call)
}

func step(from, input, _ interface{}) []interface{} {
	c := input.(call)
	var next []interface{}
	for _, s := range from.(state).atTimeOf(c) {
		for _, each := range s.after(c) {
			next = append(next, each)
		}
	}
	return next
}

func (s state) after(c call) []state {
	switch c.Call {
	case "load", "list", "ended":
		if s.answers(c) {
			return []state{s}
		}
		return nil
	}
	next, isPossible := s.changed(c)
	switch {
	case c.isUnknown() && isPossible:
		return []state{s, next}
	case c.isUnknown():
		return []state{s}
	case c.Call == "endAll" && !isPossible:
		return []state{s}
	case c.Output.Outcome == "anew":
		if strings.Contains(s.former+s.closed, " "+c.Input.Id+" ") {
			return []state{s}
		}
		return nil
	case c.Call == "end" && c.Output.Outcome == "gone":
		// So is the answer to a forwarded end: that request must not make its client forget a later token.
		if isPossible && c.Input.Id != s.id {
			return []state{next}
		}
		if !isPossible {
			return []state{s}
		}
		return nil
	case c.Output.Outcome == "gone":
		// A former id compares what it cannot see; it may be told to give up.
		if !isPossible || (c.Call == "add" && c.Input.Id != s.id) {
			return []state{s}
		}
		return nil
	case isPossible:
		return []state{next}
	}
	return nil
}

func main() {
	sessionModel := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{state{}} },
		Step: step,
	}
	model := sessionModel.ToModel()
	sessions := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			panic(err)
		}
		sessions[c.Session] = append(sessions[c.Session], porcupine.Operation{Input: c, Call: c.Begin, Return: c.end()})
	}
	unexplained, undecided := 0, 0
	for name, operations := range sessions {
		switch porcupine.CheckOperationsTimeout(model, operations, timeToDecide) {
		case porcupine.Illegal:
			unexplained++
			fmt.Println(name)
		case porcupine.Unknown:
			undecided++
		}
	}
	fmt.Printf("%d sessions, %d unexplained, %d undecided\n", len(sessions), unexplained, undecided)
	if len(sessions) == 0 || unexplained > 0 || undecided > len(sessions)/100 {
		os.Exit(1)
	}
}
