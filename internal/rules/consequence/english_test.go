package consequence

import (
	"strings"
	"testing"
)

// base is the English vocabulary of section 2.6, as it stands there.
var base = map[Consequence]string{
	Payment: `bill billing card checkout coin credit cvc cvv debit deposit donate donation gem iban invoice lingot pay payee
		payment paypal refill refund remit spend tip transfer wallet wire withdraw withdrawal usd eur gbp jpy cny inr cad aud
		chf paid spent withdrew withdrawn`,
	Purchase: `basket bid booking buy cart coupon free gift invest membership order plans premium promo purchase redeem renew
		renewal reservation sell shop store subscribe subscription trade trial upgrade bought sold`,
	AuthenticationChange: `2fa authenticator login logoff logon logout mfa otp passcode passkey password reauthenticate register
		registration signin signout signup verification verify`,
	AccountRecovery: `forgot forgotten recover recovery reset`,
	SecurityChange: `account address change edit email manage notification phone preference privacy profile security setting
		update username`,
	PermissionChange: `allow authorise authorize block connect disconnect grant link permission revoke unblock unlink unsubscribe`,
	LegalAcceptance:  `accept accepted agree agreed consent eula terms tos`,
	Publication: `chat comment contact discuss discussion dm feedback follow forum friend invite message nudge post publish
		reblog reply report repost retweet send sent share submit tweet unfollow upvote`,
	Destructive:  `archive cancel cancellation deactivate delete deletion destroy discard erase purge remove trash unenroll wipe`,
	FileTransfer: `attach attachment download export import upload`,
}

// phrases are those of section 2.6, with forms of their first word.
var phrases = map[Consequence][]string{
	Payment:  {"check out", "checking out", "checks out", "checked out"},
	Purchase: {"choose plan", "choose a plan", "chose a plan", "chosen a plan", "choosing a plan", "select plan", "selected plan", "change plan", "changing plan", "add to cart", "adding to cart"},
	AuthenticationChange: {
		"log in", "logs in", "logged in", "logging in", "log out", "logged out", "log off", "sign in", "signed in", "signing in",
		"sign out", "sign off", "sign up", "signed up", "two factor", "two-factor", "one time code", "one-time code",
		"switch account", "switch accounts", "switching accounts",
	},
}

// forms are words in each kind of inflection: -s -es -d -ed -ing -er -ers,
// silent e, y to ied and ies, doubled consonants (section 2.6).
var forms = map[Consequence]string{
	Payment: `payments pays payer paying deposited depositing transferred transferring tipped tipping spender spends wires
		wired wiring donated donating donates billed bills cards remitted refunds refunded refunder withdraws withdrawing`,
	Purchase: `buys buyer buyers buying bidder bidding bids shopping shopped shopper shops sells seller sellers selling
		subscribed subscriber subscribers subscribing renews renewed trades trading trader upgrades upgraded upgrading
		orders ordered ordering purchases purchased purchaser redeems redeemed`,
	AuthenticationChange: `verifies verified verifying verifier registers registered registering passwords logins passkeys
		reauthenticated reauthenticating`,
	AccountRecovery:  `recovers recovered recovering resets resetting recoveries`,
	SecurityChange:   `changes changed changing changer edited editing edits emails emailed managed managing manager managers updates updating updated settings profiles addresses`,
	PermissionChange: `allows allowed allowing blocks blocked blocker blocking connects connected grants granted links linked linking revokes revoked revoking unlinked authorized authorizing authorised`,
	LegalAcceptance:  `accepts accepting agrees agreeing consents consented`,
	Publication: `replies replied replying replier submits submitted submitting submitter sends sender senders sending shares
		shared sharing sharer posts posted posting poster posters publishes published publisher publishing messages
		messaging commented commenting chatted chatting dms followed follower followers following invites invited inviting
		tweets tweeted tweeting`,
	Destructive: `deletes deleted deleting deleter cancels canceled cancelled canceling cancelling removes removed removing
		remover destroys destroyed destroyer discards discarded erases erasing purged purging trashes trashed wiped wiping
		archived archiving archives unenrolls unenrolled`,
	FileTransfer: `attaches attached attaching downloads downloaded downloader downloading exports exported exporting
		exporter imports imported importing importer uploads uploaded uploading uploader attachments`,
}

func englishRows() []expectation {
	var out []expectation
	add := func(rule, text string, want Consequence) {
		for _, written := range []string{text, strings.ToUpper(text), "(" + text + ")", "the " + text + " now"} {
			out = append(out, expectation{rule, click(written), want})
		}
	}
	for c, words := range base {
		for w := range strings.FieldsSeq(words) {
			add("words", w, c)
		}
	}
	for c, words := range forms {
		for w := range strings.FieldsSeq(words) {
			add("inflection", w, c)
		}
	}
	for c, texts := range phrases {
		for _, p := range texts {
			add("phrases", p, c)
		}
	}
	// The first category across all texts wins.
	for _, order := range []struct {
		labels []string
		want   Consequence
	}{
		{[]string{"Delete and pay"}, Payment}, {[]string{"Delete", "Order"}, Purchase}, {[]string{"Delete", "Log in"}, AuthenticationChange},
		{[]string{"Edit", "Reset"}, AccountRecovery}, {[]string{"Allow", "Edit"}, SecurityChange}, {[]string{"Accept", "Allow"}, PermissionChange},
		{[]string{"Send", "Accept"}, LegalAcceptance}, {[]string{"Delete", "Send"}, Publication}, {[]string{"Download", "Delete"}, Destructive},
	} {
		out = append(out, expectation{"order", click(order.labels...), order.want})
	}
	// Words are whole words.
	for _, w := range strings.Fields("player repays cardinal tipi sharepoint orderly settled formats copy para parameter video mail alter sat") {
		out = append(out, expectation{"whole words", click(w), Unknown})
	}
	return out
}

// Section 2.6: endings are made for every word of the list.
func TestEndings(t *testing.T) {
	for c, words := range base {
		for w := range strings.FieldsSeq(words) {
			made := []string{w + "s", w + "ing", w + "ed", w + "er", w + "ers"}
			if stem, ok := strings.CutSuffix(w, "e"); ok {
				made = []string{w + "s", stem + "ing", stem + "ed", stem + "er", stem + "ers"}
			} else if stem, ok := strings.CutSuffix(w, "y"); ok && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])) {
				made = []string{stem + "ies", stem + "ied", w + "ing"}
			}
			for _, m := range made {
				if got := Classify(click(m)); got != c {
					t.Errorf("%s of %s: %s, want %s", m, w, got, c)
				}
			}
		}
	}
}
