package aztest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// queueRig is a queue of the in-memory service or of Azurite.
type queueRig struct {
	t       *testing.T
	service *azqueue.ServiceClient
	queue   *azqueue.QueueClient
	azurite bool
}

func (r queueRig) put(text string, o *azqueue.EnqueueMessageOptions) *azqueue.EnqueuedMessage {
	r.t.Helper()
	resp, err := r.queue.EnqueueMessage(context.Background(), text, o)
	if err != nil {
		r.t.Fatalf("put: %v", err)
	}
	return resp.Messages[0]
}

func (r queueRig) get(n, visibility int32) []*azqueue.DequeuedMessage {
	r.t.Helper()
	resp, err := r.queue.DequeueMessages(context.Background(), &azqueue.DequeueMessagesOptions{NumberOfMessages: &n, VisibilityTimeout: &visibility})
	if err != nil {
		r.t.Fatalf("get: %v", err)
	}
	return resp.Messages
}

func (r queueRig) texts() (all []string) {
	r.t.Helper()
	resp, err := r.queue.PeekMessages(context.Background(), &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
	if err != nil {
		r.t.Fatalf("peek: %v", err)
	}
	for _, m := range resp.Messages {
		all = append(all, *m.MessageText)
	}
	return all
}

// refused pins status and code of an answer.
func refused(t *testing.T, err error, status int, codes ...string) {
	t.Helper()
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.StatusCode != status || !slices.Contains(codes, answer.ErrorCode) {
		t.Errorf("err = %v, want %d %v", err, status, codes)
	}
}

// onQueues asks the same questions of the in-memory service and of Azurite.
func onQueues(t *testing.T, ask func(t *testing.T, r queueRig)) {
	t.Run("memory", func(t *testing.T) {
		s := aztest.New(nil)
		ask(t, queueRig{t, s.QueueService(), s.Queue("orders"), false})
	})
	t.Run("Azurite", func(t *testing.T) {
		account := azuritetest.Account(t)
		credential, err := azqueue.NewSharedKeyCredential(account.Name, account.Key)
		if err != nil {
			t.Fatal(err)
		}
		pool := &http.Transport{}
		t.Cleanup(pool.CloseIdleConnections)
		service, err := azqueue.NewServiceClientWithSharedKeyCredential(account.QueueURL+"/", credential,
			&azqueue.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: pool}, PerCallPolicies: []policy.Policy{signedHeader{}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service.CreateQueue(t.Context(), "orders", nil); err != nil {
			t.Fatal(err)
		}
		ask(t, queueRig{t, service, service.NewQueueClient("orders"), true})
	})
}

func TestAQueueIsCreatedOnceAndHasSettingsThatTheLastWriterWins(t *testing.T) {
	onQueues(t, func(t *testing.T, r queueRig) {
		ctx := t.Context()
		if _, err := r.queue.Create(ctx, nil); err != nil {
			t.Errorf("the same again: %v, want it to be taken for done", err)
		}
		_, err := r.queue.Create(ctx, &azqueue.CreateOptions{Metadata: map[string]*string{"team": to.Ptr("a")}})
		refused(t, err, 409, "QueueAlreadyExists")
		if _, err := r.queue.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: map[string]*string{"team": to.Ptr("b")}}); err != nil {
			t.Fatal(err)
		}
		r.put("x", nil)
		p, err := r.queue.GetProperties(ctx, nil)
		if err != nil || *p.ApproximateMessagesCount != 1 || len(p.Metadata) != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		if _, err := r.queue.SetAccessPolicy(ctx, &azqueue.SetAccessPolicyOptions{QueueACL: []*azqueue.SignedIdentifier{{
			ID: to.Ptr("p"), AccessPolicy: &azqueue.AccessPolicy{Permission: to.Ptr("r")}}}}); err != nil {
			t.Fatal(err)
		}
		if acl, err := r.queue.GetAccessPolicy(ctx, nil); err != nil || len(acl.SignedIdentifiers) != 1 || *acl.SignedIdentifiers[0].ID != "p" {
			t.Errorf("%+v, %v", acl, err)
		}
		var names []string
		for pages := r.service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: to.Ptr("ord")}); pages.More(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range page.Queues {
				names = append(names, *q.Name)
			}
		}
		if !slices.Equal(names, []string{"orders"}) {
			t.Errorf("queues %q", names)
		}
		if _, err := r.queue.Delete(ctx, nil); err != nil {
			t.Fatal(err)
		}
		_, err = r.queue.GetProperties(ctx, nil)
		refused(t, err, 404, "QueueNotFound")
		_, err = r.queue.Delete(ctx, nil)
		refused(t, err, 404, "QueueNotFound")
		if _, err = r.queue.Create(ctx, nil); !r.azurite { // which frees the name at once
			refused(t, err, 409, "QueueBeingDeleted")
		}
	})
}

func TestAReceiptIsGoodUntilTheNextOne(t *testing.T) {
	onQueues(t, func(t *testing.T, r queueRig) {
		ctx := t.Context()
		sent := r.put("<one> & two", nil)
		m := r.get(1, 30)[0]
		if *m.MessageID != *sent.MessageID || *m.DequeueCount != 1 || *m.MessageText != "<one> & two" || *m.PopReceipt == *sent.PopReceipt {
			t.Errorf("received %+v, sent %+v", m, sent)
		}
		if again := r.get(1, 30); len(again) != 0 {
			t.Errorf("a hidden message was received: %+v", again)
		}
		_, err := r.queue.DeleteMessage(ctx, *m.MessageID, *sent.PopReceipt, nil)
		refused(t, err, map[bool]int{false: 404, true: 400}[r.azurite], "MessageNotFound", "PopReceiptMismatch")
		u, err := r.queue.UpdateMessage(ctx, *m.MessageID, *m.PopReceipt, "changed", &azqueue.UpdateMessageOptions{VisibilityTimeout: to.Ptr(int32(0))})
		if err != nil || *u.PopReceipt == *m.PopReceipt {
			t.Fatalf("%+v, %v", u, err)
		}
		_, err = r.queue.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil)
		refused(t, err, map[bool]int{false: 404, true: 400}[r.azurite], "MessageNotFound", "PopReceiptMismatch")
		if got := r.texts(); !slices.Equal(got, []string{"changed"}) {
			t.Errorf("visible %q", got)
		}
		if _, err := r.queue.DeleteMessage(ctx, *m.MessageID, *u.PopReceipt, nil); err != nil {
			t.Error(err)
		}
		_, err = r.queue.DeleteMessage(ctx, *m.MessageID, *u.PopReceipt, nil)
		refused(t, err, 404, "MessageNotFound")
	})
}

func TestWhatAQueueDoesNotTake(t *testing.T) {
	onQueues(t, func(t *testing.T, r queueRig) {
		ctx := t.Context()
		codes := []string{"OutOfRangeQueryParameterValue"}
		if r.azurite {
			codes = append(codes, "") // it answers some without a code
		}
		for _, n := range []int32{0, 33} {
			_, err := r.queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: &n})
			refused(t, err, 400, codes...)
		}
		for _, v := range []int32{0, 604801} {
			_, err := r.queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{VisibilityTimeout: &v})
			refused(t, err, 400, codes...)
		}
		_, err := r.queue.EnqueueMessage(ctx, strings.Repeat("x", 64<<10+1), nil)
		if err == nil {
			t.Error("a message beyond 64 KiB is taken")
		}
		if _, err := r.queue.EnqueueMessage(ctx, strings.Repeat("x", 64<<10), nil); err != nil {
			t.Errorf("a message of 64 KiB: %v", err)
		}
		if _, err := r.queue.ClearMessages(ctx, nil); err != nil {
			t.Error(err)
		}
		if got := r.texts(); len(got) != 0 {
			t.Errorf("cleared: %d messages", len(got))
		}
	})
}

func TestMessagesAreHiddenShownAndExpireByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		r := queueRig{t, s.QueueService(), s.Queue("orders"), false}
		r.put("late", &azqueue.EnqueueMessageOptions{VisibilityTimeout: to.Ptr(int32(60))})
		r.put("soon gone", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(30))})
		stays := r.put("stays", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(-1))})
		if stays.ExpirationTime.Year() != 9999 {
			t.Errorf("expires %v", stays.ExpirationTime)
		}
		first := r.get(32, 10)
		if len(first) != 2 || *first[0].MessageText != "soon gone" || *first[0].PopReceipt != *first[1].PopReceipt {
			t.Fatalf("received %d messages, which share a pop receipt only if they come in one answer", len(first))
		}
		bubble.Sleep(11 * time.Second)
		second := r.get(32, 10)
		if len(second) != 2 || *second[0].DequeueCount != 2 {
			t.Errorf("received again: %d", len(second))
		}
		_, err := r.queue.DeleteMessage(t.Context(), *first[1].MessageID, *first[1].PopReceipt, nil)
		refused(t, err, 404, "MessageNotFound")
		bubble.Sleep(50 * time.Second)
		if got := r.texts(); !slices.Equal(got, []string{"stays", "late"}) {
			t.Errorf("after a minute %q are visible", got)
		}
		// A receipt whose time is over is good as long as nobody else has received the message.
		if _, err := r.queue.DeleteMessage(t.Context(), *second[1].MessageID, *second[1].PopReceipt, nil); err != nil {
			t.Error(err)
		}
		bubble.Sleep(8 * 24 * time.Hour)
		if got := r.texts(); len(got) != 0 {
			t.Errorf("after a week %q are left", got)
		}
	})
}

func TestQueueRequestsAreNamedAndMeetFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		q := s.Queue("orders")
		once := policy.WithRetryOptions(t.Context(), policy.RetryOptions{MaxRetries: -1})
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Message"), Count: 1})
		if _, err := q.EnqueueMessage(once, "x", nil); err == nil {
			t.Error("the answer was not lost")
		}
		if _, err := q.EnqueueMessage(once, "x", nil); err != nil {
			t.Error(err)
		}
		got, err := q.DequeueMessages(once, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
		if err != nil || len(got.Messages) != 2 {
			t.Errorf("%d messages, %v: the lost one was carried out", len(got.Messages), err)
		}
		m := got.Messages[0]
		_, _ = q.UpdateMessage(once, *m.MessageID, *m.PopReceipt, "y", nil)
		_, _ = q.DeleteMessage(once, *m.MessageID, *m.PopReceipt, nil)
		_, _ = q.PeekMessage(once, nil)
		_, _ = q.ClearMessages(once, nil)
		_, _ = q.GetProperties(once, nil)
		_, _ = q.Delete(once, nil)
		var ops []string
		for _, r := range s.Log() {
			ops = append(ops, r.Op)
		}
		want := []string{"Put Message", "Put Message", "Get Messages", "Update Message", "Delete Message", "Peek Messages", "Clear Messages", "Get Queue Metadata", "Delete Queue"}
		if !slices.Equal(ops, want) {
			t.Errorf("sent %q, want %q", ops, want)
		}
	})
}
