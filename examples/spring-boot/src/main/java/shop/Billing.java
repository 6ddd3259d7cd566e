package shop;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.springframework.stereotype.Component;

@Component
@RocketMQMessageListener(topic = "orders", consumerGroup = "billing")
public class Billing implements RocketMQListener<String> {
    private final List<String> bills = new CopyOnWriteArrayList<>();

    @Override
    public void onMessage(String order) {
        bills.add("bill for " + order);
    }

    public List<String> bills() {
        return bills;
    }
}
