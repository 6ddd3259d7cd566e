// The client that `pocketmq behave` runs: Go. It does what python_client.py does.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const interval = 20 * time.Millisecond

func main() {
	rlog.SetLogLevel("error")
	topic, group, role := os.Getenv("BEHAVE_TOPIC"), os.Getenv("BEHAVE_GROUP"), os.Getenv("BEHAVE_ROLE")
	servers := strings.Split(os.Getenv("NAMESRV_ADDR"), ";")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	if role != "producer" {
		c, err := rocketmq.NewPushConsumer(
			consumer.WithNameServer(servers),
			consumer.WithGroupName(group),
			consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
			consumer.WithConsumerOrder(role == "ordered"),
		)
		check(err)
		check(c.Subscribe(topic, consumer.MessageSelector{},
			func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
				for _, message := range messages {
					fmt.Println("GOT", message.Queue.QueueId, message.QueueOffset)
				}
				return consumer.ConsumeSuccess, nil
			}))
		check(c.Start())
		defer c.Shutdown()
	}
	if role == "producer" || role == "both" {
		p, err := rocketmq.NewProducer(producer.WithNameServer(servers), producer.WithGroupName(group+"_producer"))
		check(err)
		check(p.Start())
		defer p.Shutdown()
		go send(p, topic)
	}
	<-ended
}

func send(p rocketmq.Producer, topic string) {
	for number := 0; ; number++ {
		message := primitive.NewMessage(topic, []byte(fmt.Sprintf("message %d", number)))
		if _, err := p.SendSync(context.Background(), message); err != nil {
			fmt.Println("FAILED", number, strings.SplitN(err.Error(), "\n", 2)[0])
		} else {
			fmt.Println("SENT", number)
		}
		time.Sleep(interval)
	}
}

func check(err error) {
	if err != nil {
		fmt.Println("FAILED", err)
		os.Exit(1)
	}
}
