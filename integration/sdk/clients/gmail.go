package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// mailOf is a mail with a date, an id and a boundary that are new in each run.
func mailOf(word string) string {
	n := rand.Int64()
	return strings.ReplaceAll(fmt.Sprintf("To: Bob <bob@example.org>\nSubject: Order %s\nDate: %s\nMessage-ID: <%d@example.com>\n"+
		"MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b%d\n\n--b%d\nContent-Type: text/plain\n\nIt is on its way.\n--b%d--\n",
		word, time.Now().Format(time.RFC1123Z), n, n, n, n), "\n", "\r\n")
}

func gmailService(ctx context.Context) (*gmail.Service, error) {
	return gmail.NewService(ctx, option.WithTokenSource(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "none"})))
}

// gmailClient sends a mail.
func gmailClient(ctx context.Context, word string) (string, error) {
	service, err := gmailService(ctx)
	if err != nil {
		return "", err
	}
	message := &gmail.Message{Raw: base64.URLEncoding.EncodeToString([]byte(mailOf(word)))}
	sent, err := service.Users.Messages.Send("me", message).Context(ctx).Do()
	if err != nil {
		return "", err
	}
	return sent.Id, nil
}

// gmailUpload sends a mail as an upload.
func gmailUpload(ctx context.Context, word string) (string, error) {
	service, err := gmailService(ctx)
	if err != nil {
		return "", err
	}
	mail := strings.NewReader(mailOf(word))
	sent, err := service.Users.Messages.Send("me", &gmail.Message{}).Media(mail, googleapi.ContentType("message/rfc822")).Context(ctx).Do()
	if err != nil {
		return "", err
	}
	return sent.Id, nil
}
