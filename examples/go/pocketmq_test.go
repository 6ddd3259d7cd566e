package shop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Filled by TestMain: the name server, and the HTTP port of the server.
var namesrv, admin string

func TestMain(m *testing.M) {
	server := exec.Command("pocketmq", "serve", "--ephemeral", "--log-level", "error",
		"--port", "0", "--namesrv-port", "0", "--admin-port", "0")
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pocketmq:", err)
		os.Exit(2)
	}
	lines := bufio.NewScanner(out) // NAMESRV_ADDR=..., then POCKETMQ_ADMIN=..., once clients can connect
	for admin == "" && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch name {
		case "NAMESRV_ADDR":
			namesrv = value
		case "POCKETMQ_ADMIN":
			admin = value
		}
	}
	code := 2
	if admin != "" {
		code = m.Run()
	}
	server.Process.Signal(syscall.SIGTERM)
	server.Wait()
	os.Exit(code)
}

// Forget everything that was done so far: topics, messages, offsets, faults, the request log.
func reset(t *testing.T) {
	ask(t, "POST", "/api/reset", "")
}

// One request to the HTTP port; a refusal ends the test.
func ask(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequest(method, admin+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, path, text)
	}
	return string(text)
}
