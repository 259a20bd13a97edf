package control;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Spring Boot with Spring Session and Spring Security, and with routes by which tests act on its sessions. */
@SpringBootApplication
public class ControlApplication {

  public static void main(String[] arguments) {
    SpringApplication.run(ControlApplication.class, arguments);
  }
}
