package io.pocketmq.junit5;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * A RocketMQ name server and broker in a process of its own, with the HTTP port by which tests look at it and change it.
 *
 * <p>The process ends with this JVM, also if the JVM is killed. Tests get one from {@link PocketMqExtension}; use
 * {@link #start} for a server with options of its own, virtual time for example.
 */
public final class PocketMq implements AutoCloseable {
    private static final String[] FINDINGS = {"lost", "duplicated", "out_of_order", "offset_moved_back", "unread"};
    private static final int STOP_SECONDS = 10;
    /** Longer than 30 seconds, after which a Java client repeats a heartbeat that it has dropped. */
    private static final Duration WAIT = Duration.ofSeconds(40);
    private static final int PAUSE_MS = 50;
    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private static PocketMq shared;

    private final Process process;
    private final String namesrvAddr;
    private final String adminUrl;

    private PocketMq(Process process, String namesrvAddr, String adminUrl) {
        this.process = process;
        this.namesrvAddr = namesrvAddr;
        this.adminUrl = adminUrl;
    }

    /**
     * The server of this JVM. Its address is the system property {@code rocketmq.namesrv.addr}, where Java clients look
     * for it. It begins with the topics, groups and messages of {@code pocketmq.yml} among the test resources, if there is
     * one, and {@link #reset} returns to them.
     *
     * @return the server, started at the first call
     */
    public static synchronized PocketMq shared() {
        if (shared == null) {
            shared = startWithFirstState();
            System.setProperty("rocketmq.namesrv.addr", shared.namesrvAddr);
        }
        return shared;
    }

    /** With the topics, groups and messages of {@code pocketmq.yml} among the test resources, if there is one. */
    static PocketMq startWithFirstState() {
        URL state = Thread.currentThread().getContextClassLoader().getResource("pocketmq.yml");
        try {
            return state == null ? start() : start("--load", Path.of(state.toURI()).toString());
        } catch (URISyntaxException error) {
            throw new IllegalStateException(state + " is not a file", error);
        }
    }

    /**
     * Starts a server. The program is {@code pocketmq} on the {@code PATH}, or what the environment variable
     * {@code POCKETMQ} names.
     *
     * @param options more options of {@code pocketmq serve}, such as {@code --virtual-time}
     * @return the server, once clients can connect
     * @throws IllegalStateException if it does not start; what it printed is in the standard error stream
     */
    public static PocketMq start(String... options) {
        return start(Optional.ofNullable(System.getenv("POCKETMQ")).orElse("pocketmq"), List.of(options));
    }

    static PocketMq start(String program, List<String> options) {
        List<String> command = new ArrayList<>(List.of(program, "serve", "--ephemeral", "--log-level", "error"));
        command.addAll(List.of("--port", "0", "--namesrv-port", "0", "--admin-port", "0"));
        command.addAll(options);
        try {
            Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
            BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            return new PocketMq(process, value(lines, "NAMESRV_ADDR=", command), value(lines, "POCKETMQ_ADMIN=", command));
        } catch (IOException error) {
            throw new IllegalStateException("cannot run " + program + ": install PocketMQ, or set POCKETMQ to its path", error);
        }
    }

    private static String value(BufferedReader lines, String name, List<String> command) throws IOException {
        String line = lines.readLine();
        if (line == null || !line.startsWith(name)) {
            throw new IllegalStateException(String.join(" ", command) + " did not start: it printed " + line);
        }
        return line.substring(name.length());
    }

    /**
     * The address for {@code setNamesrvAddr}.
     *
     * @return {@code host:port} of the name server
     */
    public String namesrvAddr() {
        return namesrvAddr;
    }

    /**
     * The address of the HTTP port, and of its page.
     *
     * @return {@code http://host:port}
     */
    public String adminUrl() {
        return adminUrl;
    }

    ProcessHandle process() {
        return process.toHandle();
    }

    /** Returns to the state after the start: forgets topics, messages, offsets, fault rules and the request log. */
    public void reset() {
        post("/api/reset", "{}");
    }

    /**
     * Creates a topic.
     *
     * @param name which must not exist
     * @param queues how many
     */
    public void createTopic(String name, int queues) {
        post("/api/topics", "{'name': '" + name + "', 'queues': " + queues + "}");
    }

    /**
     * Creates the retry topic of a consumer group. A client that starts before it exists learns of it up to 30 seconds
     * later, and its first retry waits for that.
     *
     * @param name of the group, without prefix
     */
    public void createGroup(String name) {
        createTopic("%RETRY%" + name, 1);
    }

    /**
     * Waits until members of a group hold all queues of a topic: they receive what is sent from then on. A new group may
     * skip what is sent before.
     *
     * @param topic that the group consumes
     * @param group of consumers
     */
    public void awaitConsumers(String topic, String group) {
        String queues = "";
        for (long end = System.nanoTime() + WAIT.toNanos(); System.nanoTime() < end; pause()) {
            if (!get("/api/groups?filter=" + encode(group)).contains("\"" + group + "\"")) {
                continue;
            }
            queues = get("/api/groups/" + encode(group) + "/queues");
            List<String> wanted = new ArrayList<>(List.of(queues.split("(?=\\{\"group\":)")));
            wanted.removeIf(queue -> !queue.contains("\"topic\":\"" + topic + "\""));
            if (!wanted.isEmpty() && wanted.stream().noneMatch(queue -> queue.contains("\"held_by\":[]"))) {
                return;
            }
        }
        throw new AssertionError(group + " does not hold all queues of " + topic + ": " + queues);
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", error);
        }
    }

    /**
     * What an address of the HTTP port answers.
     *
     * @param path {@code /api/topics/orders/messages} for example
     * @return JSON
     * @throws IllegalStateException if it is refused, with the reason
     */
    public String get(String path) {
        return ask(HttpRequest.newBuilder(URI.create(adminUrl + path)).build());
    }

    /**
     * Sends JSON to an address of the HTTP port.
     *
     * @param path {@code /api/faults} for example
     * @param json in which single quotes stand for double ones if it has no double ones
     * @return JSON
     * @throws IllegalStateException if it is refused, with the reason
     */
    public String post(String path, String json) {
        String body = json.indexOf('"') < 0 ? json.replace('\'', '"') : json;
        return ask(HttpRequest.newBuilder(URI.create(adminUrl + path)).POST(BodyPublishers.ofString(body)).build());
    }

    /**
     * Fails if a message of a topic was lost, delivered twice, out of order or not at all, or an offset moved back.
     *
     * @param topic that the group consumes
     * @param group of consumers
     * @param allowed kinds of findings that are expected: {@code lost}, {@code duplicated}, {@code out_of_order},
     *     {@code offset_moved_back}, {@code unread}
     */
    public void assertClean(String topic, String group, String... allowed) {
        String verdict = get("/api/ledger?topic=" + encode(topic) + "&group=" + encode(group));
        for (String kind : FINDINGS) {
            if (!List.of(allowed).contains(kind) && verdict.contains("\"" + kind + "\":[{")) {
                throw new AssertionError(group + " has " + kind + " messages of " + topic + ": " + verdict);
            }
        }
    }

    private static String encode(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8);
    }

    private static String ask(HttpRequest request) {
        try {
            HttpResponse<String> answer = HTTP.send(request, BodyHandlers.ofString());
            if (answer.statusCode() >= 400) {
                throw new IllegalStateException(request.method() + " " + request.uri() + ": " + answer.body());
            }
            return answer.body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted: " + request.uri(), error);
        }
    }

    /** Stops the server, and waits until it has ended. */
    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
