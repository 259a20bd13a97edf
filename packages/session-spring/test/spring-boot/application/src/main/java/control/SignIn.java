package control;

import java.util.Set;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpStatus;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.logout.HttpStatusReturningLogoutSuccessHandler;

/** `POST /login` and `POST /logout` of Spring Security for ann and bob, who both have the password `secret`. */
@Configuration(proxyBeanMethods = false)
class SignIn {

  private static final Set<String> CAN_READ_CONTEXTS = Set.of("jdk", "security");

  @Bean
  UserDetailsService users() {
    var ann = User.withUsername("ann").password("{noop}secret").roles("USER", "ADMIN").build();
    var bob = User.withUsername("bob").password("{noop}secret").roles("USER").build();
    return new InMemoryUserDetailsManager(ann, bob);
  }

  @Bean
  SecurityFilterChain security(HttpSecurity http, @Value("${serializer}") String serializer) throws Exception {
    if (!CAN_READ_CONTEXTS.contains(serializer)) {
      http.securityContext(context -> context.securityContextRepository(new UserInAttributes()));
    }
    return http
        .csrf(csrf -> csrf.disable())
        .authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
        .formLogin(form -> form
            .successHandler((request, response, user) -> response.setStatus(HttpStatus.NO_CONTENT.value()))
            .failureHandler((request, response, failure) -> response.setStatus(HttpStatus.UNAUTHORIZED.value())))
        .logout(logout -> logout
            .logoutSuccessHandler(new HttpStatusReturningLogoutSuccessHandler(HttpStatus.NO_CONTENT)))
        .build();
  }
}
