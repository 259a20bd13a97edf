package control;

import jakarta.servlet.FilterChain;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.stereotype.Component;
import org.springframework.web.filter.OncePerRequestFilter;

/** Answers 500 with the exception and its causes, also where the session cannot be loaded or saved. */
@Component
@Order(Ordered.HIGHEST_PRECEDENCE) // before the filter of Spring Session
class FailuresAsText extends OncePerRequestFilter {

  @Override
  protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
      throws IOException {
    try {
      chain.doFilter(request, response);
    } catch (Throwable failure) {
      response.reset();
      response.setStatus(HttpStatus.INTERNAL_SERVER_ERROR.value());
      response.setContentType(MediaType.TEXT_PLAIN_VALUE);
      print(failure, response.getWriter());
    }
  }

  private static void print(Throwable failure, PrintWriter text) {
    for (var cause = failure; cause != null; cause = cause.getCause()) text.println(cause);
  }
}
