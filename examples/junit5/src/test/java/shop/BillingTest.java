package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pocketmq.junit5.PocketMq;
import io.pocketmq.junit5.PocketMqExtension;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PocketMqExtension.class)
class BillingTest {
    /** Starts the consumer under test. It finds the server by itself. */
    private static DefaultMQPushConsumer startBilling(MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer billing = new DefaultMQPushConsumer("billing");
        billing.setHeartbeatBrokerInterval(1000); // a heartbeat that the client drops costs 1 s, not 30
        billing.subscribe("orders", "*");
        billing.registerMessageListener(listener);
        billing.start();
        return billing;
    }

    @Test
    void everyOrderIsBilledOnce(PocketMq mq) throws Exception {
        mq.createTopic("orders", 2);
        for (int number = 0; number < 10; number++) {
            mq.post("/api/topics/orders/messages", "{'text': 'order " + number + "', 'tags': 'created'}");
        }
        CountDownLatch billed = new CountDownLatch(10);
        DefaultMQPushConsumer billing = startBilling((orders, context) -> {
            orders.forEach(order -> billed.countDown());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            assertTrue(billed.await(20, TimeUnit.SECONDS));
        } finally {
            billing.shutdown();
        }
        mq.assertClean("orders", "billing", "offset_moved_back"); // a commit of this client may be late: docs/languages.md
    }

    @Test
    void anOrderThatFailsIsTriedAgain(PocketMq mq) throws Exception {
        mq.createTopic("orders", 1);
        mq.createGroup("billing"); // else the client learns of the retry topic 30 s later
        mq.post("/api/topics/orders/messages", "{'text': 'order 17'}");
        CountDownLatch billed = new CountDownLatch(1);
        DefaultMQPushConsumer billing = startBilling((orders, context) -> failOnce(orders.get(0).getReconsumeTimes(), context, billed));
        try {
            assertTrue(billed.await(20, TimeUnit.SECONDS));
        } finally {
            billing.shutdown();
        }
        mq.assertClean("orders", "billing", "offset_moved_back");
    }

    private static ConsumeConcurrentlyStatus failOnce(int retries, ConsumeConcurrentlyContext context, CountDownLatch billed) {
        if (retries == 0) {
            context.setDelayLevelWhenNextConsume(1); // again in a second; level 3, ten seconds, is the default
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        }
        billed.countDown();
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    @Test
    void aBusyBrokerIsTriedAgain(PocketMq mq) throws Exception {
        mq.createTopic("orders", 4);
        mq.post("/api/faults", "{'effect': 'refuse', 'code': 'SEND_MESSAGE_V2', 'response': 'SYSTEM_BUSY', 'times': 2}");
        DefaultMQProducer shop = new DefaultMQProducer("shop");
        shop.start();
        try {
            assertEquals(SendStatus.SEND_OK, shop.send(new Message("orders", "order 17".getBytes())).getSendStatus());
        } finally {
            shop.shutdown();
        }
        assertTrue(mq.get("/api/faults").contains("\"hit_count\":2"));
        assertEquals(3, mq.get("/api/requests?code=SEND_MESSAGE_V2").split("\"id\":").length - 1);
    }
}
