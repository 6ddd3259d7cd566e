package io.pocketmq.junit5;

import java.lang.reflect.Constructor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * {@code @ExtendWith(PocketMqExtension.class)}: a RocketMQ that is reset before each test. Test methods, lifecycle methods
 * and constructors may take it as a parameter of type {@link PocketMq}.
 *
 * <p>One server serves all tests of a JVM that run one after the other. Its address is the system property
 * {@code rocketmq.namesrv.addr} from before the first {@code @BeforeAll}. A test that runs while another one of its class
 * or JVM uses that server gets a server of its own: its clients need {@code setNamesrvAddr(mq.namesrvAddr())}.
 *
 * <p>What a constructor or {@code @BeforeAll} creates on the server is gone when the test begins. Topics and groups that
 * every test needs, those of the listeners of a Spring context for example, belong into {@code pocketmq.yml} among the test
 * resources: {@code {topics: {orders: 4}, groups: [billing]}}.
 */
public final class PocketMqExtension
        implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback, ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(PocketMqExtension.class);
    private static final String OF_CLASS = "of the class";
    private static final String OF_TEST = "of the test";

    /** From the constructor of a test's instance to its {@code beforeEach}, which follow each other in one thread. */
    private static final ThreadLocal<Loan> OF_INSTANCE = new ThreadLocal<>();

    /** JUnit makes one. */
    public PocketMqExtension() {
    }

    /** A server that a class or a test has borrowed. The tests of a class use that of the class, one at a time. */
    private static final class Loan {
        final PocketMq server;
        private final Loan ofClass;
        private final AtomicBoolean isUsed = new AtomicBoolean();

        private Loan(PocketMq server, Loan ofClass) {
            this.server = server;
            this.ofClass = ofClass;
        }

        static Loan forClass() {
            return new Loan(Servers.lend(), null);
        }

        static Loan forTest(Loan ofClass) {
            if (ofClass != null && ofClass.isUsed.compareAndSet(false, true)) {
                return new Loan(ofClass.server, ofClass);
            }
            return new Loan(Servers.lend(), null);
        }

        void end() {
            if (ofClass != null) {
                ofClass.isUsed.set(false);
            } else {
                Servers.giveBack(server);
            }
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        ofClass(context);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        Loan loan = ofInstance(context);
        OF_INSTANCE.remove();
        context.getStore(NAMESPACE).put(OF_TEST, loan);
        loan.server.reset();
    }

    @Override
    public void afterEach(ExtensionContext context) {
        end(context.getStore(NAMESPACE).remove(OF_TEST, Loan.class));
    }

    @Override
    public void afterAll(ExtensionContext context) {
        end(context.getStore(NAMESPACE).remove(OF_CLASS, Loan.class));
    }

    private static void end(Loan loan) {
        if (loan != null) {
            loan.end();
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == PocketMq.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Loan ofTest = context.getStore(NAMESPACE).get(OF_TEST, Loan.class);
        if (ofTest != null) {
            return ofTest.server;
        }
        boolean isOfTest = context.getTestInstanceLifecycle().orElse(Lifecycle.PER_METHOD) == Lifecycle.PER_METHOD;
        boolean isConstructor = parameter.getDeclaringExecutable() instanceof Constructor;
        return (isConstructor && isOfTest ? ofInstance(context) : ofClass(context)).server;
    }

    /** That of the test whose instance this thread makes; a constructor that failed may have left that of another class. */
    private static Loan ofInstance(ExtensionContext context) {
        Loan ofClass = context.getStore(NAMESPACE).get(OF_CLASS, Loan.class);
        Loan loan = OF_INSTANCE.get();
        if (loan != null && loan.ofClass != null && loan.ofClass != ofClass) {
            loan.end();
            loan = null;
        }
        if (loan == null) {
            loan = Loan.forTest(ofClass);
            OF_INSTANCE.set(loan);
        }
        return loan;
    }

    /** That of the class, or of the class around it. */
    private static Loan ofClass(ExtensionContext context) {
        Loan known = context.getStore(NAMESPACE).get(OF_CLASS, Loan.class);
        if (known != null) {
            return known;
        }
        Loan loan = Loan.forClass();
        context.getStore(NAMESPACE).put(OF_CLASS, loan);
        loan.server.reset();
        return loan;
    }
}
