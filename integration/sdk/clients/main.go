// Program clients makes one change of an API by its vendor's Go library, as a script does. Its arguments are the
// library's name and a word that the change is known by. It prints the id of what it made.
package main

import (
	"context"
	"fmt"
	"os"
)

// clients are by the name of their library.
var clients = map[string]func(ctx context.Context, word string) (string, error){
	"stripe-go": stripeClient,
	"go-github": githubClient,
	"githubv4":  githubGraphQLClient,
	"slack-go":  slackClient,
	"twilio-go": twilioClient,
	"google-go": calendarClient,
	"gmail-go":  gmailClient,
	"mcp-go":    mcpClient,

	"gmail-go-upload": gmailUpload,
	// What serves tickets writes down to the file that the word names what it did.
	"mcp-go-server": mcpServer,
	"gofakes3":      s3Server,
	"aws-sqs":       sqsClient,
	"aws-s3":        s3Client,
	"aws-dynamodb":  dynamoClient,
	"aws-ses":       sesClient,
	"aws-sns":       snsClient,
}

func main() {
	if len(os.Args) != 3 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: clients LIBRARY WORD")
		os.Exit(2)
	}
	made, err := clients[os.Args[1]](context.Background(), os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(made)
}
