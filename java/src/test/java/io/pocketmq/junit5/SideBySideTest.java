package io.pocketmq.junit5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** JUnit's parallel mode: tests that run at the same time use the same names, and do not see one another. */
@ExtendWith(PocketMqExtension.class)
@Execution(ExecutionMode.CONCURRENT)
class SideBySideTest {
    private static final CountDownLatch TWO_HAVE_SENT = new CountDownLatch(2);
    private static final Set<PocketMq> USED = ConcurrentHashMap.newKeySet();
    private final PocketMq ofConstructor;

    SideBySideTest(PocketMq mq) {
        ofConstructor = mq;
    }

    @AfterAll
    static void serversWereUsedAgain() {
        assertTrue(USED.size() > 1 && USED.size() <= 4, USED.size() + " servers for 12 tests by 3 threads");
    }

    @RepeatedTest(12)
    void aTestSeesItsOwnMessages(PocketMq mq, RepetitionInfo repetition) throws Exception {
        assertSame(ofConstructor, mq);
        USED.add(mq);
        mq.createTopic("orders", 1);
        DefaultMQProducer shop = new DefaultMQProducer("shop");
        shop.setNamesrvAddr(mq.namesrvAddr());
        shop.start();
        try {
            shop.send(new Message("orders", ("order " + repetition.getCurrentRepetition()).getBytes()));
        } finally {
            shop.shutdown();
        }
        TWO_HAVE_SENT.countDown();
        assertTrue(TWO_HAVE_SENT.await(20, TimeUnit.SECONDS), "the tests did not run side by side");
        String stored = mq.get("/api/topics/orders/messages");
        assertEquals(1, stored.split("\"message_id\":").length - 1, stored);
        assertTrue(stored.contains("\"order " + repetition.getCurrentRepetition() + "\""), stored);
    }
}
