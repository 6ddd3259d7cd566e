package shop;

import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class Shop {
    private final RocketMQTemplate template;

    public Shop(RocketMQTemplate template) {
        this.template = template;
    }

    public static void main(String[] words) {
        SpringApplication.run(Shop.class, words);
    }

    public void order(String text) {
        template.syncSend("orders:created", text);
    }
}
