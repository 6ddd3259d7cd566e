package io.pocketmq.junit5;

import java.util.Map;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.MapPropertySource;

/**
 * {@code @ContextConfiguration(initializers = PocketMqContextInitializer.class)}: the Spring Boot starter of RocketMQ finds
 * the {@linkplain PocketMq#shared server of this JVM} in the property {@code rocketmq.name-server}.
 */
public final class PocketMqContextInitializer implements ApplicationContextInitializer<ConfigurableApplicationContext> {
    /** Spring makes one. */
    public PocketMqContextInitializer() {
    }

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        Map<String, Object> properties = Map.of("rocketmq.name-server", PocketMq.shared().namesrvAddr());
        context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("pocketmq", properties));
    }
}
