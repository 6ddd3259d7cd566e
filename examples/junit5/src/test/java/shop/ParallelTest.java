package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pocketmq.junit5.PocketMq;
import io.pocketmq.junit5.PocketMqExtension;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests of one JVM that run side by side have a server each, so their clients need its address. */
@ExtendWith(PocketMqExtension.class)
@Execution(ExecutionMode.CONCURRENT)
class ParallelTest {
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4})
    void anOrderIsStoredOnce(int number, PocketMq mq) throws Exception {
        mq.createTopic("orders", 1);
        DefaultMQProducer shop = new DefaultMQProducer("shop");
        shop.setNamesrvAddr(mq.namesrvAddr());
        shop.start();
        try {
            shop.send(new Message("orders", ("order " + number).getBytes()));
        } finally {
            shop.shutdown();
        }
        assertEquals(2, mq.get("/api/topics/orders/messages").split("\"text\":\"order " + number + "\"", -1).length);
    }
}
