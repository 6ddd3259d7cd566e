// The official Go client; the words and the lines of every language's program are listed in `clients.py`.
//
//	go_talk ENDPOINT plain|tls USER PASSWORD PREFIX STEP...
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const seconds = 100 * time.Second

func config(group string) *rmq.Config {
	signed := &credentials.SessionCredentials{}
	if os.Args[3] != "-" {
		signed.AccessKey, signed.AccessSecret = os.Args[3], os.Args[4]
	}
	return &rmq.Config{Endpoint: os.Args[1], ConsumerGroup: group, Credentials: signed}
}

func name(word string) string {
	return os.Args[5] + "_" + word
}

// Ends the step: `run` prints why.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func message(topic, body string) *rmq.Message {
	one := &rmq.Message{Topic: topic, Body: []byte(body)}
	one.SetKeys("k" + body)
	one.SetTag("A")
	one.AddProperty("a", body)
	return one
}

func inGroup(topic, body string) *rmq.Message {
	one := message(topic, body)
	one.SetMessageGroup("one")
	return one
}

func numbered(letter string, count int) []string {
	bodies := []string{}
	for number := 0; number < count; number++ {
		bodies = append(bodies, fmt.Sprintf("%s%d", letter, number))
	}
	return bodies
}

func newProducer(topic string) rmq.Producer {
	producer, err := rmq.NewProducer(config(""), rmq.WithTopics(topic),
		rmq.WithTransactionChecker(&rmq.TransactionChecker{
			Check: func(*rmq.MessageView) rmq.TransactionResolution { return rmq.COMMIT },
		}))
	check(err)
	check(producer.Start())
	return producer
}

func send(topic string, make func(topic, body string) *rmq.Message, bodies ...string) {
	producer := newProducer(topic)
	for _, body := range bodies {
		_, err := producer.Send(context.TODO(), make(topic, body))
		check(err)
	}
	check(producer.GracefulStop())
}

// The bodies as they arrive; the refused one is hidden for ten seconds the first time.
func receive(topic, group string, count int, refused string) []string {
	consumer, err := rmq.NewSimpleConsumer(config(name(group)), rmq.WithSimpleAwaitDuration(5*time.Second),
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

type delivery struct {
	body    string
	attempt int32
}

// Deliveries until there are so many. The refused message fails the first time, or every time; each is said, if at all.
func pushed(topic, group string, count int, refused string, always bool, says string) []delivery {
	seen, lock := []delivery{}, sync.Mutex{}
	listen := func(one *rmq.MessageView) rmq.ConsumerResult {
		now := delivery{string(one.GetBody()), one.GetDeliveryAttempt()}
		lock.Lock()
		defer lock.Unlock()
		isFirst := true
		for _, other := range seen {
			isFirst = isFirst && other.body != now.body
		}
		seen = append(seen, now)
		if says != "" {
			keys := one.GetKeys()
			sort.Strings(keys)
			fmt.Println(says, now.body, now.attempt, *one.GetTag(), strings.Join(keys, ","), one.GetProperties()["a"])
		}
		if now.body == refused && (isFirst || always) {
			return rmq.FAILURE
		}
		return rmq.SUCCESS
	}
	consumer, err := rmq.NewPushConsumer(config(name(group)), rmq.WithPushAwaitDuration(5*time.Second),
		rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}),
		rmq.WithPushConsumptionThreadCount(4), rmq.WithPushMaxCacheMessageCount(64),
		rmq.WithPushMessageListener(&rmq.FuncMessageListener{Consume: listen}))
	check(err)
	check(consumer.Start())
	for end := time.Now().Add(seconds); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		lock.Lock()
		isEnough := len(seen) >= count
		lock.Unlock()
		if isEnough {
			break
		}
	}
	check(consumer.GracefulStop())
	lock.Lock()
	defer lock.Unlock()
	return seen
}

func inTransaction(topic string, end func(rmq.Producer) []string) []string {
	producer := newProducer(topic)
	bodies := end(producer)
	check(producer.GracefulStop())
	return bodies
}

func begin(producer rmq.Producer, topic, body string) rmq.Transaction {
	transaction := producer.BeginTransaction()
	_, err := producer.SendWithTransaction(context.TODO(), message(topic, body), transaction)
	check(err)
	return transaction
}

func dueAt(due time.Time) func(topic, body string) *rmq.Message {
	return func(topic, body string) *rmq.Message {
		one := message(topic, body)
		one.SetDelayTimestamp(due)
		return one
	}
}

var steps = map[string]func() []string{
	"send": func() []string {
		send(name("Normal"), message, numbered("m", 10)...)
		return numbered("m", 10)
	},
	"simple": func() []string {
		bodies := receive(name("Normal"), "simple", 10, "m3")
		sort.Strings(bodies)
		return bodies
	},
	"push": func() []string {
		bodies := []string{}
		for _, one := range pushed(name("Normal"), "push", 11, "m5", false, "") {
			bodies = append(bodies, fmt.Sprintf("%s/%d", one.body, one.attempt))
		}
		sort.Strings(bodies)
		return bodies
	},
	"fifo": func() []string {
		send(name("Fifo"), inGroup, numbered("f", 6)...)
		return receive(name("Fifo"), "fifo", 6, "")
	},
	"order": func() []string {
		send(name("Order"), inGroup, numbered("f", 6)...)
		bodies := []string{}
		for _, one := range pushed(name("Order"), "order", 7, "f3", false, "") {
			bodies = append(bodies, one.body)
		}
		return bodies
	},
	"transaction": func() []string {
		topic := name("Trans")
		return inTransaction(topic, func(producer rmq.Producer) []string {
			check(begin(producer, topic, "dropped").RollBack())
			check(begin(producer, topic, "committed").Commit())
			return receive(topic, "trans", 1, "")
		})
	},
	"check": func() []string {
		topic := name("Trans")
		return inTransaction(topic, func(producer rmq.Producer) []string {
			begin(producer, topic, "forgotten")
			return receive(topic, "trans", 1, "")
		})
	},
	"delay": func() []string {
		start := time.Now()
		send(name("Delay"), dueAt(start.Add(5*time.Second)), "d")
		bodies := receive(name("Delay"), "delay", 1, "")
		if time.Since(start) > 2900*time.Millisecond {
			return append(bodies, "late")
		}
		return append(bodies, "early")
	},
	"recall": func() []string {
		topic, due := name("Delay"), time.Now().Add(6*time.Second)
		producer := newProducer(topic)
		receipts, err := producer.Send(context.TODO(), dueAt(due)(topic, "recalled"))
		check(err)
		_, err = producer.Send(context.TODO(), dueAt(due.Add(time.Second))(topic, "kept"))
		check(err)
		id, err := producer.Recall(context.TODO(), topic, receipts[0].RecallHandle)
		check(err)
		check(producer.GracefulStop())
		said := "other"
		if id == receipts[0].MessageID {
			said = "same"
		}
		return append([]string{said}, receive(topic, "delay", 1, "")...)
	},
	"dead": func() []string {
		send(name("Bad"), message, "bad")
		pushed(name("Bad"), "bad", math.MaxInt, "bad", true, "TRIED")
		return nil
	},
	"deadfifo": func() []string {
		send(name("BadFifo"), inGroup, "bad")
		pushed(name("BadFifo"), "badfifo", math.MaxInt, "bad", true, "TRIED")
		return nil
	},
	"member": func() []string {
		pushed(name("Normal"), "member", math.MaxInt, "", false, "GOT")
		return nil
	},
}

func run(step string) {
	said := strings.ToUpper(step)
	defer func() {
		if why := recover(); why != nil {
			fmt.Println(said, "refused", strings.Join(strings.Fields(fmt.Sprint(why)), " "))
		}
	}()
	fmt.Println(said, strings.Join(steps[step](), " "))
}

func main() {
	rmq.EnableSsl = os.Args[2] == "tls"
	rmq.ResetLogger()
	for _, step := range os.Args[6:] {
		run(step)
	}
	fmt.Println("DONE")
}
