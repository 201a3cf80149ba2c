package main

import (
	"context"

	"github.com/slack-go/slack"
)

// slackClient posts a message.
func slackClient(ctx context.Context, word string) (string, error) {
	_, ts, err := slack.New("xoxb-none").PostMessageContext(ctx, "C024BE91L", slack.MsgOptionText(word, false))
	return ts, err
}
