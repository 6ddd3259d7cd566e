package shop;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.awaitility.Awaitility.await;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pocketmq.junit5.PocketMq;
import io.pocketmq.junit5.PocketMqContextInitializer;
import io.pocketmq.junit5.PocketMqExtension;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.context.ContextConfiguration;

@SpringBootTest
@ExtendWith(PocketMqExtension.class)
@ContextConfiguration(initializers = PocketMqContextInitializer.class)
class ShopTest {
    @Autowired private Shop shop;
    @Autowired private Billing billing;

    @BeforeEach
    void beginWithoutBills(PocketMq mq) {
        mq.awaitConsumers("orders", "billing");
        billing.bills().clear();
    }

    @Test
    void anOrderIsBilled(PocketMq mq) {
        shop.order("order 17");
        await().atMost(20, SECONDS).until(() -> billing.bills().equals(List.of("bill for order 17")));
        // Orders of earlier tests stay while a listener is connected, and are unread; a commit of the client may be late.
        mq.assertClean("orders", "billing", "unread", "offset_moved_back");
        assertTrue(mq.get("/api/topics/orders/messages").contains("\"tags\":\"created\""));
    }

    @Test
    void aBusyBrokerIsTriedAgain(PocketMq mq) {
        mq.post("/api/faults", "{'effect': 'refuse', 'code': 'SEND_MESSAGE_V2', 'topic': 'orders', 'response': 'SYSTEM_BUSY'}");
        shop.order("order 18");
        await().atMost(20, SECONDS).until(() -> billing.bills().equals(List.of("bill for order 18")));
        assertTrue(mq.get("/api/faults").contains("\"hit_count\":1"));
    }
}
