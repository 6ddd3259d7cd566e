package io.pocketmq.junit5;

import java.util.ArrayList;
import java.util.List;

/**
 * The servers of this JVM, each lent to one borrower at a time. The first is {@link PocketMq#shared}, so tests that run one
 * after the other use no other; tests that run side by side get one each. They end with the JVM.
 */
final class Servers {
    private static final List<PocketMq> FREE = new ArrayList<>();
    private static boolean isSharedStarted;

    private Servers() {
    }

    /** A server that nobody else uses until it is given back. */
    static synchronized PocketMq lend() {
        if (!FREE.isEmpty()) {
            return FREE.remove(0);
        }
        if (isSharedStarted) {
            return PocketMq.startWithFirstState();
        }
        PocketMq shared = PocketMq.shared();
        isSharedStarted = true;
        return shared;
    }

    static synchronized void giveBack(PocketMq server) {
        FREE.add(server == PocketMq.shared() ? 0 : FREE.size(), server);
    }
}
