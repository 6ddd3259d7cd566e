import java.io.PrintWriter;
import java.util.*;
import java.util.concurrent.*;
import org.junit.platform.engine.*;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.*;
import org.junit.platform.launcher.core.*;

public class RunSuite {
    public static void main(String[] args) throws Exception {
        LauncherDiscoveryRequestBuilder builder = LauncherDiscoveryRequestBuilder.request();
        for (String name : args) builder.selectors(DiscoverySelectors.selectClass(name));
        builder.configurationParameter("junit.jupiter.execution.parallel.config.strategy", "fixed").configurationParameter("junit.jupiter.execution.parallel.config.fixed.parallelism", "4");
        Launcher launcher = LauncherFactory.create();
        launcher.registerTestExecutionListeners(new TestExecutionListener() {
            public void executionSkipped(TestIdentifier id, String reason) { System.out.println("RESULT SKIP " + name(id)); }
            public void executionFinished(TestIdentifier id, TestExecutionResult result) {
                if (!id.isTest() && result.getStatus() == TestExecutionResult.Status.SUCCESSFUL) return;
                String text = result.getThrowable().map(t -> String.valueOf(t).replace('\n', ' ')).orElse("");
                System.out.println("RESULT " + result.getStatus() + " " + name(id) + " " + text.substring(0, Math.min(300, text.length())));
                System.out.flush();
            }
            private String name(TestIdentifier id) {
                String u = id.getUniqueId();
                return u.replaceAll(".*class:org\\.apache\\.rocketmq\\.", "").replaceAll("\\]/\\[", "/").replaceAll("[\\]]$", "");
            }
        });
        launcher.execute(builder.build());
        System.out.println("ALL DONE");
        System.exit(0);
    }
}
