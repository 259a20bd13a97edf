package control;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.springframework.stereotype.Component;
import tools.jackson.databind.module.SimpleModule;
import tools.jackson.databind.ser.std.ToStringSerializer;

/** In responses, numbers that JavaScript does not have are texts. */
@Component
class NumbersAsText extends SimpleModule {

  NumbersAsText() {
    addSerializer(BigInteger.class, ToStringSerializer.instance);
    addSerializer(BigDecimal.class, ToStringSerializer.instance);
  }
}
