// The official Go client: what `test_other_clients.py` expects of every client. Arguments: endpoint, "tls" or "plain".
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const seconds = 60 * time.Second

func config(group string) *rmq.Config {
	return &rmq.Config{Endpoint: os.Args[1], ConsumerGroup: group, Credentials: &credentials.SessionCredentials{}}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func message(topic, body string) *rmq.Message {
	one := &rmq.Message{Topic: topic, Body: []byte(body)}
	one.SetKeys("k" + body)
	one.SetTag("A")
	one.AddProperty("a", body)
	return one
}

func send() {
	producer, err := rmq.NewProducer(config(""), rmq.WithTopics("NormalT", "FifoT", "TransT"),
		rmq.WithTransactionChecker(&rmq.TransactionChecker{
			Check: func(*rmq.MessageView) rmq.TransactionResolution { return rmq.COMMIT },
		}))
	check(err)
	check(producer.Start())
	for number := 0; number < 10; number++ {
		_, err = producer.Send(context.TODO(), message("NormalT", fmt.Sprintf("m%d", number)))
		check(err)
	}
	for number := 0; number < 6; number++ {
		one := message("FifoT", fmt.Sprintf("f%d", number))
		one.SetMessageGroup("one")
		_, err = producer.Send(context.TODO(), one)
		check(err)
	}
	transaction := producer.BeginTransaction()
	_, err = producer.SendWithTransaction(context.TODO(), message("TransT", "committed"), transaction)
	check(err)
	check(transaction.Commit())
	check(producer.GracefulStop())
}

// The bodies in the order of their arrival; the refused one is hidden for ten seconds the first time.
func receive(group, topic string, count int, refused string) []string {
	consumer, err := rmq.NewSimpleConsumer(config(group), rmq.WithSimpleAwaitDuration(5*time.Second),
		rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}))
	check(err)
	check(consumer.Start())
	bodies := []string{}
	for end := time.Now().Add(seconds); len(bodies) < count && time.Now().Before(end); {
		found, err := consumer.Receive(context.TODO(), 4, 20*time.Second)
		if err != nil && !strings.Contains(err.Error(), "MESSAGE_NOT_FOUND") {
			check(err)
		}
		for _, one := range found {
			body := string(one.GetBody())
			if body == refused && one.GetDeliveryAttempt() == 1 {
				check(consumer.ChangeInvisibleDuration(one, 10*time.Second))
				continue
			}
			check(consumer.Ack(context.TODO(), one))
			bodies = append(bodies, body)
		}
	}
	check(consumer.GracefulStop())
	return bodies
}

func pushed(topic string) []string {
	seen, lock := map[string]bool{}, sync.Mutex{}
	consumer, err := rmq.NewPushConsumer(config("push"), rmq.WithPushAwaitDuration(5*time.Second),
		rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}),
		rmq.WithPushConsumptionThreadCount(4), rmq.WithPushMaxCacheMessageCount(64),
		rmq.WithPushMessageListener(&rmq.FuncMessageListener{Consume: func(one *rmq.MessageView) rmq.ConsumerResult {
			body := string(one.GetBody())
			lock.Lock()
			seen[fmt.Sprintf("%s/%d", body, one.GetDeliveryAttempt())] = true
			lock.Unlock()
			if body == "m5" && one.GetDeliveryAttempt() == 1 {
				return rmq.FAILURE
			}
			return rmq.SUCCESS
		}}))
	check(err)
	check(consumer.Start())
	bodies := []string{}
	for end := time.Now().Add(seconds); len(bodies) < 11 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		bodies = bodies[:0]
		lock.Lock()
		for body := range seen {
			bodies = append(bodies, body)
		}
		lock.Unlock()
	}
	sort.Strings(bodies)
	check(consumer.GracefulStop())
	return bodies
}

func main() {
	rmq.EnableSsl = os.Args[2] == "tls"
	rmq.ResetLogger()
	send()
	normal := receive("simple", "NormalT", 10, "m3")
	sort.Strings(normal)
	fmt.Println("NORMAL", strings.Join(normal, " "))
	fmt.Println("FIFO", strings.Join(receive("fifo", "FifoT", 6, ""), " "))
	fmt.Println("TRANSACTION", strings.Join(receive("trans", "TransT", 1, ""), " "))
	fmt.Println("PUSHED", strings.Join(pushed("NormalT"), " "))
	fmt.Println("DONE")
}
