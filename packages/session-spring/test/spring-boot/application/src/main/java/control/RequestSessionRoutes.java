package control;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PatchMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The session of the request's cookie. */
@RestController
@RequestMapping("/session")
class RequestSessionRoutes {

  @GetMapping
  ResponseEntity<ShownSession> show(HttpServletRequest request) {
    var session = request.getSession(false);
    return session == null ? ResponseEntity.notFound().build() : ResponseEntity.ok(ShownSession.of(session));
  }

  /** Creates a session if there is none. */
  @PatchMapping
  ShownSession change(HttpServletRequest request, @RequestBody SessionChange change) {
    var session = request.getSession();
    change.attributes().forEach(session::setAttribute);
    if (change.maxInactiveInterval() != null) session.setMaxInactiveInterval(change.maxInactiveInterval());
    if (change.changeId()) request.changeSessionId();
    return ShownSession.of(session);
  }

  /** Sets attributes of many classes. */
  @PostMapping("/kinds")
  ShownSession setKinds(HttpSession session) {
    JavaKinds.values().forEach(session::setAttribute);
    return ShownSession.of(session);
  }

  @DeleteMapping
  void invalidate(HttpServletRequest request) {
    var session = request.getSession(false);
    if (session != null) session.invalidate();
  }
}
