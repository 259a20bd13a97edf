package control;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.context.event.EventListener;
import org.springframework.http.HttpStatus;
import org.springframework.session.Session;
import org.springframework.session.events.AbstractSessionEvent;
import org.springframework.session.events.SessionCreatedEvent;
import org.springframework.session.events.SessionExpiredEvent;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** The events of sessions that this application has heard, in their order. */
@RestController
@RequestMapping("/events")
class HeardEvents {

  record HeardEvent(String type, ShownSession session) {}

  private final List<HeardEvent> heard = new CopyOnWriteArrayList<>();

  @EventListener
  void hear(AbstractSessionEvent event) {
    Session session = event.getSession();
    heard.add(new HeardEvent(typeOf(event), ShownSession.of(session)));
  }

  @GetMapping
  List<HeardEvent> heard() {
    return heard;
  }

  @DeleteMapping
  @ResponseStatus(HttpStatus.NO_CONTENT)
  void forget() {
    heard.clear();
  }

  private static String typeOf(AbstractSessionEvent event) {
    if (event instanceof SessionCreatedEvent) return "created";
    return event instanceof SessionExpiredEvent ? "expired" : "deleted";
  }
}
