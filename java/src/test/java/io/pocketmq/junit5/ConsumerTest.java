package io.pocketmq.junit5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What tests of consumers build on: verdicts that can fail, and retries that do not wait for the client's next poll. */
@ExtendWith(PocketMqExtension.class)
class ConsumerTest {
    private final BlockingQueue<Integer> deliveries = new LinkedBlockingQueue<>();

    private DefaultMQPushConsumer billing(MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer billing = new DefaultMQPushConsumer("billing");
        billing.setHeartbeatBrokerInterval(1000);
        billing.subscribe("orders", "*");
        billing.registerMessageListener(listener);
        billing.start();
        return billing;
    }

    @Test
    void whatIsDeliveredTwiceIsNotClean(PocketMq mq) throws Exception {
        mq.createTopic("orders", 1);
        mq.post("/api/topics/orders/messages", "{'text': 'order 17'}");
        mq.post("/api/faults", "{'effect': 'duplicate', 'code': 'PULL_MESSAGE', 'topic': 'orders', 'times': null}");
        DefaultMQPushConsumer billing = billing((messages, context) -> {
            deliveries.add(messages.get(0).getReconsumeTimes());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            assertEquals(0, deliveries.poll(20, TimeUnit.SECONDS));
        } finally {
            billing.shutdown();
        }
        assertThrows(AssertionError.class, () -> mq.assertClean("orders", "billing"));
        mq.assertClean("orders", "billing", "duplicated", "offset_moved_back");
        assertThrows(IllegalStateException.class, () -> mq.assertClean("ordres", "billing"));
    }

    @Test
    void theFirstRetryOfAGroupWaitsForItsDelayOnly(PocketMq mq) throws Exception {
        mq.createTopic("orders", 1);
        mq.createGroup("billing");
        mq.post("/api/topics/orders/messages", "{'text': 'order 17'}");
        DefaultMQPushConsumer billing = billing((messages, context) -> {
            context.setDelayLevelWhenNextConsume(1); // a second
            int attempt = messages.get(0).getReconsumeTimes();
            deliveries.add(attempt);
            return attempt == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            assertEquals(0, deliveries.poll(20, TimeUnit.SECONDS));
            assertEquals(1, deliveries.poll(20, TimeUnit.SECONDS), "without its retry topic the group would learn of it after 30 s");
        } finally {
            billing.shutdown();
        }
        mq.assertClean("orders", "billing", "offset_moved_back");
    }

    @Test
    void everyTestBeginsWithoutVerdictsAndFaults(PocketMq mq) {
        assertEquals("[]", mq.get("/api/ledger"));
        assertEquals("[]", mq.get("/api/faults"));
    }
}
