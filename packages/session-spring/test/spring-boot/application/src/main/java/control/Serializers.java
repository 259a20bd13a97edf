package control;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.serializer.GenericJacksonJsonRedisSerializer;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.security.jackson.SecurityJacksonModules;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.jsontype.BasicPolymorphicTypeValidator;

/** What writes values to Redis, by the property `serializer`. With `jdk` there is no bean, as in most applications. */
@Configuration(proxyBeanMethods = false)
class Serializers {

  @Bean("springSessionDefaultRedisSerializer")
  @ConditionalOnProperty(name = "serializer", havingValue = "plain")
  RedisSerializer<Object> plain() {
    return GenericJacksonJsonRedisSerializer.builder().build();
  }

  @Bean("springSessionDefaultRedisSerializer")
  @ConditionalOnProperty(name = "serializer", havingValue = "typed")
  RedisSerializer<Object> typed() {
    return RedisSerializer.json();
  }

  @Bean("springSessionDefaultRedisSerializer")
  @ConditionalOnProperty(name = "serializer", havingValue = "security")
  RedisSerializer<Object> security() {
    var allowed = BasicPolymorphicTypeValidator.builder()
        .allowIfSubType("java.")
        .allowIfSubType("org.springframework.")
        .allowIfSubType("control.");
    var modules = SecurityJacksonModules.getModules(getClass().getClassLoader(), allowed);
    return new GenericJacksonJsonRedisSerializer(JsonMapper.builder().addModules(modules).build());
  }
}
