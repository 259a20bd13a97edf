package control;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.session.data.redis.RedisSessionExpirationStore;
import org.springframework.session.data.redis.SortedSetRedisSessionExpirationStore;

/** With the property `expirations=sorted-set`, the indexed repository has no buckets. */
@Configuration(proxyBeanMethods = false)
@ConditionalOnProperty(name = "expirations", havingValue = "sorted-set")
class SortedSet {

  @Bean
  RedisSessionExpirationStore expirations(
      RedisConnectionFactory connections,
      ObjectProvider<RedisSerializer<Object>> serializer,
      @Value("${spring.session.data.redis.namespace}") String namespace) {
    var redis = new RedisTemplate<String, Object>();
    redis.setKeySerializer(RedisSerializer.string());
    redis.setDefaultSerializer(serializer.getIfAvailable(RedisSerializer::java));
    redis.setConnectionFactory(connections);
    redis.afterPropertiesSet();
    return new SortedSetRedisSessionExpirationStore(redis, namespace);
  }
}
