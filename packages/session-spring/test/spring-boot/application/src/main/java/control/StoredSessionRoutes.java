package control;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.session.FindByIndexNameSessionRepository;
import org.springframework.session.Session;
import org.springframework.session.SessionRepository;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PatchMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** Sessions by their ids, as the repository has them: no cookie is needed. */
@RestController
@RequestMapping("/sessions")
class StoredSessionRoutes<S extends Session> {

  private final SessionRepository<S> sessions;

  StoredSessionRoutes(SessionRepository<S> sessions) {
    this.sessions = sessions;
  }

  @PostMapping
  @ResponseStatus(HttpStatus.CREATED)
  ShownSession create(@RequestBody SessionChange change) {
    return saved(sessions.createSession(), change);
  }

  @GetMapping("/{id}")
  ResponseEntity<ShownSession> show(@PathVariable String id) {
    return ResponseEntity.of(find(id).map(ShownSession::of));
  }

  /** As a request does that changes the session: the save also renews it. */
  @PatchMapping("/{id}")
  ResponseEntity<ShownSession> change(@PathVariable String id, @RequestBody SessionChange change) {
    var found = find(id);
    found.ifPresent(session -> session.setLastAccessedTime(Instant.now()));
    return ResponseEntity.of(found.map(session -> saved(session, change)));
  }

  @DeleteMapping("/{id}")
  @ResponseStatus(HttpStatus.NO_CONTENT)
  void delete(@PathVariable String id) {
    sessions.deleteById(id);
  }

  /** Those of a principal. Fails unless the repository is indexed. */
  @GetMapping
  List<ShownSession> ofPrincipal(@RequestParam String principal) {
    if (!(sessions instanceof FindByIndexNameSessionRepository<S> indexed)) {
      throw new UnsupportedOperationException("The repository has no index");
    }
    return indexed.findByPrincipalName(principal).values().stream().map(ShownSession::of).toList();
  }

  private Optional<S> find(String id) {
    return Optional.ofNullable(sessions.findById(id));
  }

  private ShownSession saved(S session, SessionChange change) {
    change.attributes().forEach(session::setAttribute);
    if (change.maxInactiveInterval() != null) {
      session.setMaxInactiveInterval(Duration.ofSeconds(change.maxInactiveInterval()));
    }
    if (change.changeId()) session.changeSessionId();
    sessions.save(session);
    return ShownSession.of(session);
  }
}
