package control;

import jakarta.servlet.http.HttpSession;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.security.core.context.SecurityContext;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.web.context.HttpSessionSecurityContextRepository;
import org.springframework.session.Session;

/**
 * A session as JSON. Times are epoch milliseconds, the interval is in seconds.
 *
 * @param attributes as Jackson writes them; without the context of Spring Security
 * @param classes the class of each attribute
 * @param signedInAs who is in the context of Spring Security, or null; of a request, whom Spring Security knows
 */
record ShownSession(
    String id,
    long creationTime,
    long lastAccessedTime,
    long maxInactiveInterval,
    Map<String, Object> attributes,
    Map<String, String> classes,
    SignedInUser signedInAs) {

  record SignedInUser(String name, List<String> authorities) {}

  static ShownSession of(Session session) {
    return of(
        session.getId(),
        session.getCreationTime().toEpochMilli(),
        session.getLastAccessedTime().toEpochMilli(),
        session.getMaxInactiveInterval().toSeconds(),
        session.getAttributeNames(),
        session::getAttribute,
        userOf(session.getAttribute(HttpSessionSecurityContextRepository.SPRING_SECURITY_CONTEXT_KEY)));
  }

  /** The session of the running request. */
  static ShownSession of(HttpSession session) {
    return of(
        session.getId(),
        session.getCreationTime(),
        session.getLastAccessedTime(),
        session.getMaxInactiveInterval(),
        Collections.list(session.getAttributeNames()),
        session::getAttribute,
        userOf(SecurityContextHolder.getContext()));
  }

  private static ShownSession of(
      String id,
      long creationTime,
      long lastAccessedTime,
      long maxInactiveInterval,
      Collection<String> names,
      Function<String, Object> attribute,
      SignedInUser signedInAs) {
    var attributes = new TreeMap<String, Object>();
    var classes = new TreeMap<String, String>();
    for (var name : names) {
      var value = attribute.apply(name);
      if (value == null) continue;
      classes.put(name, value.getClass().getName());
      if (!(value instanceof SecurityContext)) attributes.put(name, value);
    }
    return new ShownSession(
        id, creationTime, lastAccessedTime, maxInactiveInterval, attributes, classes, signedInAs);
  }

  private static SignedInUser userOf(Object value) {
    if (!(value instanceof SecurityContext context)) return null;
    var user = context.getAuthentication();
    if (user == null || user instanceof AnonymousAuthenticationToken) return null;
    var authorities = user.getAuthorities().stream().map(GrantedAuthority::getAuthority).toList();
    return new SignedInUser(user.getName(), authorities);
  }
}
