// A member of a group until a line on standard input ends it: prints each message once it is consumed.
//
// Arguments: name server, topic, group, mode (concurrent, orderly or broadcast), instance name.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func main() {
	rlog.SetLogLevel("error")
	servers, topic, group, mode, instance := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	options := []consumer.Option{
		consumer.WithNameServer([]string{servers}),
		consumer.WithGroupName(group),
		consumer.WithInstance(instance),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerOrder(mode == "orderly"),
	}
	if mode == "broadcast" {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	member, err := rocketmq.NewPushConsumer(options...)
	check(err)
	check(member.Subscribe(topic, consumer.MessageSelector{}, consume))
	check(member.Start())
	fmt.Println("JOINED")
	bufio.NewReader(os.Stdin).ReadString('\n')
	check(member.Shutdown())
	fmt.Println("LEFT")
}

func consume(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	for _, message := range messages {
		fmt.Println("SEEN", message.Queue.QueueId, message.QueueOffset, message.ReconsumeTimes, message.MsgId)
	}
	return consumer.ConsumeSuccess, nil
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
