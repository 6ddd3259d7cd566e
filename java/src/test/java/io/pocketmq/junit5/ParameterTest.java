package io.pocketmq.junit5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;

/** Where a parameter may stand. All name the server of this JVM while tests run one after the other. */
@ExtendWith(PocketMqExtension.class)
class ParameterTest {
    private static PocketMq ofClass;
    private final PocketMq ofConstructor;

    ParameterTest(PocketMq mq) {
        ofConstructor = mq;
    }

    @BeforeAll
    static void theAddressIsKnown(PocketMq mq) {
        ofClass = mq;
        assertEquals(mq.namesrvAddr(), System.getProperty("rocketmq.namesrv.addr"));
        mq.createTopic("made-before-all", 1);
    }

    @BeforeEach
    void itHasWhatItBeganWith(PocketMq mq) {
        assertHasOnly(mq, "first");
        mq.createTopic("orders", 1);
    }

    @AfterEach
    void itIsTheSameOne(PocketMq mq) {
        assertSame(ofConstructor, mq);
    }

    @RepeatedTest(2)
    void allAreTheServerOfThisJvm(PocketMq mq) {
        assertSame(PocketMq.shared(), mq);
        assertSame(ofClass, mq);
        assertSame(ofConstructor, mq);
        assertHasOnly(mq, "first", "orders");
    }

    /** The topic of pocketmq.yml, and those that a test has made: not the one of {@code @BeforeAll}. */
    private static void assertHasOnly(PocketMq mq, String... topics) {
        String listed = mq.get("/api/topics");
        assertEquals(topics.length, listed.split("\"perm\":").length - 1, listed);
        for (String topic : topics) {
            assertTrue(listed.contains("{\"name\":\"" + topic + "\""), listed);
        }
    }

    @Nested
    class Inside {
        @Test
        void isTheSame(PocketMq mq) {
            assertSame(ofClass, mq);
        }
    }

    @Nested
    @TestInstance(TestInstance.Lifecycle.PER_CLASS)
    class OneInstance {
        private final PocketMq mine;

        OneInstance(PocketMq mq) {
            mine = mq;
        }

        @Test
        void isTheSame(PocketMq mq) {
            assertSame(mine, mq);
        }
    }
}
