package main

import (
	"context"

	"github.com/twilio/twilio-go"
	openapi "github.com/twilio/twilio-go/rest/api/v2010"
)

// twilioClient sends a short message.
func twilioClient(_ context.Context, word string) (string, error) {
	client := twilio.NewRestClientWithParams(twilio.ClientParams{Username: "AC00000000000000000000000000000001", Password: "none"})
	params := &openapi.CreateMessageParams{}
	params.SetTo("+15005550006")
	params.SetFrom("+15005550001")
	params.SetBody(word)
	made, err := client.Api.CreateMessage(params)
	if err != nil {
		return "", err
	}
	return *made.Sid, nil
}
