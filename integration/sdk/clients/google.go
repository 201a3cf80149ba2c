package main

import (
	"context"

	"golang.org/x/oauth2"
	"google.golang.org/api/calendar/v3"
	"google.golang.org/api/option"
)

// calendarClient makes an event.
func calendarClient(ctx context.Context, word string) (string, error) {
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "none"})
	service, err := calendar.NewService(ctx, option.WithTokenSource(token))
	if err != nil {
		return "", err
	}
	made, err := service.Events.Insert("primary", &calendar.Event{
		Summary: word,
		Start:   &calendar.EventDateTime{DateTime: "2026-02-01T09:00:00Z"},
		End:     &calendar.EventDateTime{DateTime: "2026-02-01T10:00:00Z"},
	}).Context(ctx).Do()
	if err != nil {
		return "", err
	}
	return made.Id, nil
}
