package io.pocketmq.junit5;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A server without JUnit: how it starts, ends and refuses. */
class ServerTest {
    @Test
    void closeWaitsForTheEnd() {
        ProcessHandle process;
        try (PocketMq mq = PocketMq.start("--virtual-time")) {
            process = mq.process();
            assertTrue(mq.get("/api/clock").contains("\"virtual\":true"));
        }
        assertFalse(process.isAlive());
    }

    @Test
    void itEndsWithItsJvmEvenIfThatIsKilled() throws Exception {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        Process jvm = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), Holder.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String pid = new BufferedReader(new InputStreamReader(jvm.getInputStream())).readLine();
        ProcessHandle server = ProcessHandle.of(Long.parseLong(pid)).orElseThrow();
        assertTrue(server.isAlive());
        jvm.destroyForcibly();
        server.onExit().get(20, TimeUnit.SECONDS);
    }

    /** A JVM with a server that waits to be killed. */
    static final class Holder {
        public static void main(String[] words) throws Exception {
            PocketMq mq = PocketMq.start();
            System.out.println(mq.process().pid());
            Thread.sleep(TimeUnit.MINUTES.toMillis(1));
        }
    }

    @Test
    void aMissingProgramIsNamed() {
        Exception error = assertThrows(IllegalStateException.class, () -> PocketMq.start("no-such-program", List.of()));
        assertEquals("cannot run no-such-program: install PocketMQ, or set POCKETMQ to its path", error.getMessage());
    }

    @Test
    void aServerThatDoesNotStartSaysSo() {
        Exception error = assertThrows(IllegalStateException.class, () -> PocketMq.start("--no-such-option"));
        assertTrue(error.getMessage().endsWith("--no-such-option did not start: it printed null"), error.getMessage());
    }

    @Test
    void aRefusalHasItsReason() {
        try (PocketMq mq = PocketMq.start()) {
            mq.createTopic("orders", 1);
            Exception twice = assertThrows(IllegalStateException.class, () -> mq.createTopic("orders", 1));
            assertTrue(twice.getMessage().contains("orders"), twice.getMessage());
            mq.post("/api/topics/orders/messages", "{\"text\": \"it's \\\"quoted\\\"\"}");
            assertTrue(mq.get("/api/topics/orders/messages").contains("\"it's \\\"quoted\\\"\""));
        }
    }
}
