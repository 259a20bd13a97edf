package control;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.ArrayList;
import java.util.List;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContext;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.web.context.HttpRequestResponseHolder;
import org.springframework.security.web.context.SecurityContextRepository;
import org.springframework.session.FindByIndexNameSessionRepository;

/**
 * Keeps name and authorities of the user as texts. An application with plain JSON, or with classes alone, needs that:
 * these serializers cannot read a context of Spring Security again.
 */
class UserInAttributes implements SecurityContextRepository {

  private static final String NAME = FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME;
  private static final String AUTHORITIES = "authorities";

  @Override
  @Deprecated
  public SecurityContext loadContext(HttpRequestResponseHolder exchange) {
    var context = SecurityContextHolder.createEmptyContext();
    var session = exchange.getRequest().getSession(false);
    if (session != null && session.getAttribute(NAME) instanceof String name) {
      var texts = (List<?>) session.getAttribute(AUTHORITIES);
      var authorities = AuthorityUtils.createAuthorityList(texts.toArray(String[]::new));
      context.setAuthentication(UsernamePasswordAuthenticationToken.authenticated(name, null, authorities));
    }
    return context;
  }

  @Override
  public void saveContext(SecurityContext context, HttpServletRequest request, HttpServletResponse response) {
    var user = context.getAuthentication();
    var session = request.getSession(user != null);
    if (session == null) return;
    session.setAttribute(NAME, user == null ? null : user.getName());
    session.setAttribute(AUTHORITIES, user == null ? null : textsOf(user.getAuthorities()));
  }

  @Override
  public boolean containsContext(HttpServletRequest request) {
    var session = request.getSession(false);
    return session != null && session.getAttribute(NAME) != null;
  }

  private static List<String> textsOf(Iterable<? extends GrantedAuthority> authorities) {
    // JSON with classes cannot read an immutable list again.
    var texts = new ArrayList<String>();
    authorities.forEach(each -> texts.add(each.getAuthority()));
    return texts;
  }
}
