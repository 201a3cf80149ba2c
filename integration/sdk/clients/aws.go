package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	sestypes "github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// byKey is a script's own key.
var byKey = aws.Config{
	Region: "eu-west-1",
	Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDSCRIPT", SecretAccessKey: "secret-of-a-script", SessionToken: "temporary"}, nil
	}),
}

// sqsClient queues a message.
func sqsClient(ctx context.Context, word string) (string, error) {
	made, err := sqs.NewFromConfig(byKey).SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String("https://sqs.eu-west-1.amazonaws.com/123456789012/q"), MessageBody: &word,
	})
	if err != nil {
		return "", err
	}
	return *made.MessageId, nil
}

// s3Client puts an object. Its content goes out in chunks, with a checksum behind them.
func s3Client(ctx context.Context, word string) (string, error) {
	made, err := s3.NewFromConfig(byKey).PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String("letters"), Key: aws.String("a folder/" + word), Body: strings.NewReader("hello"), ContentType: aws.String("text/plain"),
	})
	if err != nil {
		return "", err
	}
	return *made.ETag, nil
}

// dynamoClient changes an item in a transaction.
func dynamoClient(ctx context.Context, word string) (string, error) {
	_, err := dynamodb.NewFromConfig(byKey).TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []dynamotypes.TransactWriteItem{{Put: &dynamotypes.Put{
			TableName: aws.String("orders"), Item: map[string]dynamotypes.AttributeValue{"pk": &dynamotypes.AttributeValueMemberS{Value: word}},
		}}},
	})
	return word, err
}

// sesClient sends a mail.
func sesClient(ctx context.Context, word string) (string, error) {
	text := &sestypes.Content{Data: &word}
	made, err := sesv2.NewFromConfig(byKey).SendEmail(ctx, &sesv2.SendEmailInput{
		FromEmailAddress: aws.String("ann@example.com"), Destination: &sestypes.Destination{ToAddresses: []string{"bob@example.com"}},
		Content: &sestypes.EmailContent{Simple: &sestypes.Message{Subject: text, Body: &sestypes.Body{Text: text}}},
	})
	if err != nil {
		return "", err
	}
	return *made.MessageId, nil
}

// snsClient publishes a message.
func snsClient(ctx context.Context, word string) (string, error) {
	made, err := sns.NewFromConfig(byKey).Publish(ctx, &sns.PublishInput{
		TopicArn: aws.String("arn:aws:sns:eu-west-1:123456789012:news"), Message: &word,
	})
	if err != nil {
		return "", err
	}
	return *made.MessageId, nil
}

// s3Server is gofakes3, which keeps objects in memory. It writes a line for each that is opened for writing to a file.
func s3Server(_ context.Context, log string) (string, error) {
	objects := gofakes3.New(s3mem.New(), gofakes3.WithHostBucketBase("s3.eu-west-1.amazonaws.com"), gofakes3.WithAutoBucket(true)).Server()
	f, err := os.Create(log)
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	fmt.Println(l.Addr())
	return "", http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			_, _ = fmt.Fprintln(f, "opened", r.URL.Path)
		}
		objects.ServeHTTP(w, r)
	}))
}
