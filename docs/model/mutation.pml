/* One mutation identity, one proxy with its ledger, an API that keeps the conditions of
   docs/semantics.md, and people who are honest. The process may crash at every moment and
   as often as it likes; scripts ask again as often as they like, with either of two
   payloads. Every order of every step is explored.

   Time is counted in ticks. A tick may pass at any moment, except that no sending stays
   open beyond TOTAL. Parameters (-DNAME=value):
     D      an API may commit a request up to D ticks after its sending ended
     L      a read may miss an effect that is at most L ticks old
     S      settle;  K confirmations of an absence, B ticks apart
     TOTAL  deadline of one sending
     W      0: no native key; else ticks for which the API remembers a vendor key
     R      a resend begins only while the generation is younger than R ticks
     M      WATCH: a job that was accepted ends at most M ticks later
   Switches: PROBE=0 (nothing can be asked by reading), PERSON=0, NEWKEY, TWOSTEP, WATCH,
   SWEEP (choose D L K B S at the start, print violations instead of asserting), and the
   bugs BUG_*, each of which one run of runs.txt switches on and expects to be caught.

   row(from, trigger, to) is a move of the ledger's transition table: a test holds these
   names and the table together, and the model asserts the state that it starts from.

   Properties. P1: at most one effect. P2: applied has its effect, failed has none and
   never will. P3: nothing is sent once success is known. P4: somebody owns an in_flight
   record. P5: one generation carries one payload. P6: a script is told success only
   after success is durable. */

#ifndef N
#define N 3                            /* dispatches at most */
#endif
#define G 2                            /* generations at most */
#ifndef D
#define D 1
#endif
#ifndef L
#define L 1
#endif
#ifndef K
#define K 1
#endif
#ifndef B
#define B 1
#endif
#ifndef M
#define M 2
#endif
#ifndef S
#if defined(WATCH) && !defined(BUG_WATCH_SHORT)
#define S (M+L+1)                      /* settle of a watched operation covers its max */
#else
#define S (D+L+1)
#endif
#endif
#ifndef TOTAL
#define TOTAL 2
#endif
#ifndef W
#define W 0
#endif
#ifndef R
#define R (W-TOTAL-D)
#endif
#ifndef PROBE
#define PROBE 1
#endif
#ifndef PERSON
#define PERSON 1
#endif

mtype = { none, in_flight, applied, failed, needs_reconcile, indeterminate, skipped };

#ifdef SWEEP
c_decl { \#include <stdio.h>
  static int seen[4][4][4][4][16]; }
byte sD, sL, sK, sB, sS;
#undef D
#undef L
#undef K
#undef B
#undef S
#define D sD
#define L sL
#define K sK
#define B sB
#define S sS
#define must(c) if :: (c) :: else -> c_code { if (!seen[now.sD][now.sL][now.sK][now.sB][now.sS]++) \
  printf("VIOL %d %d %d %d %d\n", now.sD, now.sL, now.sK, now.sB, now.sS); }; goto stop fi
#else
#define must(c) assert(c)
#endif
#ifdef UNTIL_P1
#define must2(c) skip                  /* only P1 is asked */
#else
#define must2(c) must(c)
#endif

/* What is durable: the record. end: 0 none, 1 uncertain, 2 failure verdict, 3 success. */
mtype st = none;
bit committed, watching, kept, denied;
byte gen = 1, nd, queue;               /* queue: payload + 1 of a queued redispatch */
byte load[N+1], genof[N+1], end[N+1];
bit  thisboot[N+1];                    /* the end was recorded in this boot */

/* The API. wire: 0 not sent, 1 open, 2 closed. fate: 0 pending, 1 done, 2 never, 3 accepted.
   Slot N is a copy that a bug sends without a record. */
byte wire[N+1], fate[N+1], quiet[N+1], effects, seen_for, keyage[G+1], jobage;

/* What a crash forgets. at: where the handler stands. */
#define IDLE      0
#define RECORDED  1
#define PREPARED  2                    /* TWOSTEP: step one answered, its values not kept yet */
#define SENT      3
#define UNCERTAIN 4
#define REFUSED   5
#define SUCCESS   6
#define HEAD      7                    /* the head of a success was read */
#define KNOWN     8                    /* and recorded */
#define CUT       9
#define ACCEPTED  10                   /* WATCH: a 202 was read whole */
bit up = 1, resend, probing, forcopy, byqueue;
byte at, cur, openfor, upfor, genage, confirmed, conffor, probedat, i;
#ifdef BUG_SETTLE_FROM_CLAIM
byte claimfor[N+1];
#endif

#define CANRESEND (W > 0)
#define ASKS      (PROBE || CANRESEND)
#define IN(j)     (j < nd && genof[j] == gen)
#define OPENGEN   (IN(0) || IN(1) || IN(N-1))
#define ALLFAILED (!(IN(0) && end[0]!=2) && !(IN(1) && end[1]!=2) && !(IN(N-1) && end[N-1]!=2))
#define CLASH(p)  (CANRESEND && ((IN(0) && load[0]!=p) || (IN(1) && load[1]!=p) || (IN(N-1) && load[N-1]!=p)))
#define LIVE(j)   ((wire[j]==1 && (fate[j]==0 || fate[j]==3)) || (wire[j]==2 && (fate[j]==3 || (fate[j]==0 && quiet[j] <= D))))
#define QUIETNOW  (!LIVE(0) && !LIVE(1) && !LIVE(N-1) && !LIVE(N))
#ifdef BUG_SETTLE_FROM_CLAIM
#define SINCE(j)  claimfor[j]
#else
#define SINCE(j)  (end[j] && thisboot[j] -> quiet[j] : upfor)
#endif
#define OLD(j)    (j >= nd || SINCE(j) >= S)
#define SETTLED   (at == IDLE && OLD(0) && OLD(1) && OLD(N-1))
#ifdef BUG_ABSENT_AT_ONCE
#define BELIEVABLE 1
#else
#define BELIEVABLE SETTLED
#endif
#ifdef BUG_COMMITTED_IGNORED
#define MAYSEND 1
#else
#define MAYSEND (!committed)
#endif
#ifdef BUG_TWO_PAYLOADS
#define FITS(p) 1
#else
#define FITS(p) (!CLASH(p))
#endif
#ifdef BUG_STALE_PROBE
#define SAMEVERSION 1
#else
#define SAMEVERSION (probedat == nd)
#endif
#ifdef BUG_LATER_FAILURE
#define EARLIER 0
#else
#define EARLIER resend
#endif
#ifdef TWOSTEP                             /* step two may have gone out */
#define STEPTWO kept
#else
#define STEPTWO 1
#endif
#ifdef WATCH                               /* a person asks the API about the job; a job ends in time */
#define JOBLESS (fate[nd-1] != 3)
#define OVERDUE ((fate[0]==3 || fate[1]==3 || fate[N-1]==3) && jobage >= M)
#else
#define JOBLESS 1
#define OVERDUE 0
#endif
#ifdef BUG_GETBODY                         /* only a connection on which nothing was answered is stale */
#define STALE (fate[cur] == 0)
#else
#define STALE 1
#endif
#define upto(a, m) if :: a < m -> a++ :: else fi

#define row(from, on, to) assert(st == from); st = to

inline effect(j) {
  if
  :: W > 0 && keyage[genof[j]] < W -> skip       /* the API answers from its memory */
  :: else -> effects++; seen_for = 0; keyage[genof[j]] = 0; printf("API: effect %d, by sending %d\n", effects, j+1); must(effects <= 1)
  fi }
inline commits(j) { fate[j] = 1; effect(j) }

inline isfailed() { confirmed = 0; printf("failed\n"); must2(effects == 0 && QUIETNOW) }
inline isapplied() { confirmed = 0; watching = 0; printf("applied\n"); must2(denied || effects == 1) }
inline idle() { at = IDLE; cur = 0; resend = 0; openfor = 0; forcopy = 0 }
inline closed() { if :: wire[cur]==1 -> wire[cur] = 2; quiet[cur] = 0 :: else fi }

inline dispatch(p) {                             /* recorded before anything is sent */
  must(!committed); must(!CLASH(p));             /* P3, P5 */
  if :: !OPENGEN -> genage = 0 :: else fi;
  load[nd] = p; genof[nd] = gen; cur = nd; nd++;
  printf("dispatch %d: payload %d, generation %d\n", nd, p, gen);
  at = RECORDED; openfor = 0; kept = 0;
#ifndef BUG_STALE_PROBE
  confirmed = 0
#endif
  }
inline claim(p) {
  if :: OPENGEN && ALLFAILED -> gen++ :: else fi;
  dispatch(p); resend = 0;
#ifndef BUG_QUEUE_KEPT
  queue = 0;
#endif
#ifdef BUG_SEND_FIRST
  forcopy = 1
#else
  if
  :: st == none -> row(none, claim, in_flight)
  :: st == failed && !byqueue -> row(failed, claim, in_flight)
  :: else -> row(failed, redispatch, in_flight)
  fi;
  byqueue = 0
#endif
  }
inline claimlate() {                             /* the bug: sent, then recorded */
  skip;
#ifdef BUG_SEND_FIRST
  if :: forcopy && (st==none || st==failed) -> st = in_flight :: else fi; forcopy = 0
#endif
  }
inline becomesunknown() {
  if
  :: ASKS -> row(in_flight, unknown, needs_reconcile)
  :: !ASKS && committed -> row(in_flight, unknown, applied)
  :: else -> row(in_flight, unknown, indeterminate)
  fi }
inline outcome() {                               /* one transaction: the sending's end, and the state */
  end[cur] = (at==UNCERTAIN || at==CUT -> 1 : (at==REFUSED -> 2 : 3)); thisboot[cur] = 1;
  if
  :: st == in_flight && at == SUCCESS -> committed = 1; row(in_flight, success, applied); isapplied()
  :: st == in_flight && at == CUT -> committed = 1; becomesunknown()
  :: st == in_flight && at == UNCERTAIN -> becomesunknown()
  :: st == in_flight && at == ACCEPTED ->
#ifdef BUG_WATCH_APPLIED
       row(in_flight, success, applied); isapplied()
#else
       row(in_flight, watch, needs_reconcile); watching = 1
#endif
  :: st == in_flight && at == REFUSED && !EARLIER -> row(in_flight, failure, failed); isfailed()
  :: st == in_flight && at == REFUSED && EARLIER ->
       if :: ASKS -> row(in_flight, failure, needs_reconcile) :: else -> row(in_flight, failure, indeterminate) fi
  :: st == needs_reconcile && at == SUCCESS -> committed = 1; row(needs_reconcile, late_success, applied); isapplied()
  :: st == needs_reconcile && at == CUT -> committed = 1; row(needs_reconcile, committed, needs_reconcile)
  :: st == needs_reconcile && at == UNCERTAIN -> row(needs_reconcile, unknown, needs_reconcile)
  :: st == needs_reconcile && at == REFUSED && resend ->
#ifdef BUG_LATER_FAILURE
       st = failed; isfailed()
#else
       row(needs_reconcile, failure, needs_reconcile)
#endif
  :: st == indeterminate && at == CUT && ASKS -> committed = 1; row(indeterminate, committed, needs_reconcile)
  :: st == indeterminate && at == CUT && !ASKS -> committed = 1; row(indeterminate, committed, applied); isapplied()
  :: st == failed && at == CUT && ASKS -> committed = 1; row(failed, committed, needs_reconcile)
  :: st == failed && at == CUT && !ASKS -> committed = 1; row(failed, committed, applied); isapplied()
  :: st == indeterminate && at == SUCCESS -> committed = 1; row(indeterminate, late_success, applied); isapplied()
  :: st == failed && at == SUCCESS -> committed = 1; row(failed, late_success, applied); isapplied()
  :: else -> skip                                /* a person was quicker */
  fi;
  idle() }
inline absent() {
  confirmed = confirmed + (confirmed == 0 || conffor >= B); if :: confirmed == 1 || conffor >= B -> conffor = 0 :: else fi;
  if
  :: confirmed < K -> row(needs_reconcile, observed_absent, needs_reconcile)
  :: confirmed >= K ->
       if
       :: row(needs_reconcile, observed_absent, failed); isfailed()
       :: row(needs_reconcile, observed_absent, failed); isfailed(); queue = load[nd-1] + 1   /* on_absent: redispatch */
       :: row(needs_reconcile, observed_absent, indeterminate); confirmed = 0                 /* on_absent: escalate */
       fi;
#ifdef BUG_NEW_KEY_AFTER_ABSENCE
       if :: st == failed && gen < G -> gen++ :: else fi
#endif
  fi }
inline crash() {
  for (i : 0 .. N) { if :: wire[i]==1 -> wire[i] = 2; quiet[i] = 0 :: else fi };
  up = 0; probing = 0; upfor = 0; confirmed = 0; conffor = 0; probedat = 0; i = 0; idle() }
inline recover() {
  if
  :: st == in_flight ->
#ifdef BUG_LOST_OWNER_SENT_AGAIN
       st = failed
#else
       if
#ifdef TWOSTEP
       :: !kept && !committed -> row(in_flight, owner_lost, failed); isfailed()   /* step two needs what step one gave */
#endif
       :: (STEPTWO || committed) && ASKS -> row(in_flight, owner_lost, needs_reconcile)
       :: !ASKS && committed -> row(in_flight, owner_lost, applied); isapplied()
       :: !ASKS && !committed && STEPTWO -> row(in_flight, owner_lost, indeterminate)
       fi
#endif
  :: else
  fi }

active proctype world() {
  keyage[1] = W; keyage[G] = W;
#ifdef SWEEP
  atomic { select(sD : 0 .. 2); select(sL : 0 .. 2); select(sK : 1 .. 2); select(sB : 1 .. 2); select(sS : 0 .. 5);
           if :: sK == 1 && sB > 1 -> goto stop :: else fi }
#endif
  do
  /* scripts ask, with either payload; and the queued redispatch */
  :: atomic { up && at==IDLE && nd<N && (st==none || st==failed) && !committed && (gen<G || !OPENGEN || !ALLFAILED) ->
       if
       :: (OPENGEN && ALLFAILED) || !CLASH(0) -> claim(0)
       :: nd > 0 && ((OPENGEN && ALLFAILED) || FITS(1)) -> claim(1)           /* else 422 payload-mismatch */
       :: queue && st==failed && (!(OPENGEN && ALLFAILED) || gen<G) -> i = queue - 1; queue = 0; byqueue = 1; claim(i); i = 0
       :: else -> skip
       fi }
  /* one sending, and what comes back */
#ifdef TWOSTEP
  :: atomic { up && at==RECORDED && openfor<TOTAL && !resend -> at = PREPARED }
  :: atomic { up && at==RECORDED && !resend -> at = REFUSED; claimlate() }     /* step one failed or was lost: no effect */
#ifdef BUG_KEEP_LATE
  :: atomic { up && at==PREPARED && openfor<TOTAL -> wire[cur] = 1; at = SENT }
  :: atomic { at==SENT && !kept && !resend -> kept = 1 }
#else
  :: atomic { up && at==PREPARED && openfor<TOTAL -> kept = 1; wire[cur] = 1; at = SENT }   /* kept, then sent: a crash */
  :: atomic { up && at==PREPARED -> kept = 1; at = REFUSED }                                /* between is the last option */
#endif
  :: atomic { up && at==RECORDED && openfor<TOTAL && resend -> wire[cur] = 1; at = SENT }
#else
  :: atomic { up && at==RECORDED && openfor<TOTAL -> wire[cur] = 1; at = SENT; printf("sent %d\n", cur+1) }
  :: atomic { up && at==RECORDED -> fate[cur] = 2; at = REFUSED; claimlate() }              /* proven not sent */
#endif
  :: atomic { at==SENT && fate[cur]==1 -> claimlate(); if :: closed(); at = SUCCESS :: at = HEAD fi }
  :: atomic { at==SENT && fate[cur]==2 -> claimlate(); closed(); at = REFUSED }
  :: atomic { at==SENT -> claimlate(); closed(); at = UNCERTAIN; printf("lost %d\n", cur+1) }
#ifdef WATCH
  :: atomic { at==SENT && fate[cur]==3 -> closed(); at = ACCEPTED }
#endif
#ifdef BUG_503_FAILED
  :: atomic { at==SENT && fate[cur]!=2 -> closed(); at = REFUSED }
#endif
#if defined(BUG_RETRY_ON_TIMEOUT) || defined(BUG_GETBODY)
  :: atomic { at==SENT && wire[N]==0 && STALE -> closed(); genof[N] = genof[cur]; cur = N; wire[N] = 1 }
#endif
  :: atomic { at==HEAD && st==in_flight -> committed = 1; row(in_flight, committed, in_flight); at = KNOWN }
  :: atomic { at==HEAD && st==needs_reconcile -> committed = 1; row(needs_reconcile, committed, needs_reconcile); at = KNOWN }
  :: atomic { at==HEAD || at==KNOWN -> closed(); if :: at = SUCCESS :: at = CUT fi }
#ifdef BUG_ANSWER_FIRST
  :: atomic { at==SUCCESS -> must(st==applied || committed) }                               /* P6 */
#endif
  :: atomic { at==UNCERTAIN && CANRESEND && MAYSEND && st==in_flight && nd<N && genage<R -> /* inline, recorded first */
       end[cur] = 1; thisboot[cur] = 1; row(in_flight, resend, in_flight); i = load[cur]; dispatch(i); i = 0; resend = 1
#ifdef TWOSTEP
       ; kept = 1
#endif
       }
  :: atomic { at==UNCERTAIN || at==REFUSED || at==SUCCESS || at==CUT || at==ACCEPTED -> outcome() }
#ifdef BUG_NOBODY_RECORDS
  :: atomic { at==UNCERTAIN || at==REFUSED || at==SUCCESS || at==CUT -> idle() }
#endif
  /* the API: each request may commit or be refused while open, commit late, or neither */
#ifdef WATCH
  :: atomic { at==SENT && fate[cur]==0 -> fate[cur] = 3; jobage = 0 }
  :: atomic { fate[0]==3 -> if :: commits(0) :: fate[0] = 2 fi }
  :: atomic { fate[1]==3 -> if :: commits(1) :: fate[1] = 2 fi }
#if N > 2
  :: atomic { fate[N-1]==3 -> if :: commits(N-1) :: fate[N-1] = 2 fi }
#endif
#else
  :: atomic { LIVE(0) -> commits(0) }
  :: atomic { LIVE(1) -> commits(1) }
#if N > 2
  :: atomic { LIVE(N-1) -> commits(N-1) }
#endif
#if defined(BUG_RETRY_ON_TIMEOUT) || defined(BUG_GETBODY)
  :: atomic { LIVE(N) -> commits(N) }
#endif
#endif
  :: atomic { at==SENT && fate[cur]==0 -> fate[cur] = 2 }
  /* the runner */
  :: atomic { up && st==needs_reconcile && !watching && at==IDLE && CANRESEND && MAYSEND && nd<N && genage<R ->
       row(needs_reconcile, resend, needs_reconcile); i = load[nd-1]; dispatch(i); i = 0; resend = 1 }
  :: atomic { up && st==needs_reconcile && PROBE && !probing && effects>0 -> row(needs_reconcile, observed_applied, applied); isapplied() }
  :: atomic { up && st==needs_reconcile && PROBE && at==IDLE && BELIEVABLE && !committed && !watching && !probing &&
       (confirmed==0 || conffor>=B) && (effects==0 || seen_for<=L) -> probing = 1; probedat = nd }
  :: atomic { probing -> probing = 0;
       if :: st==needs_reconcile && !committed && !watching && at==IDLE && SAMEVERSION -> absent() :: else fi; probedat = 0 }
  :: atomic { up && st==needs_reconcile && at==IDLE && !watching -> confirmed = 0;
       if :: committed -> row(needs_reconcile, exhausted, applied); isapplied()
          :: else -> row(needs_reconcile, exhausted, indeterminate) fi }
#ifdef WATCH
  :: atomic { up && watching && st==needs_reconcile && at==IDLE && fate[nd-1]==2 ->
       row(needs_reconcile, watch_failed, failed); watching = 0; end[nd-1] = 2; isfailed() }
  :: atomic { up && watching && st==needs_reconcile && at==IDLE && jobage>=M -> row(needs_reconcile, watch_over, indeterminate); watching = 0 }
#endif
  /* a person, who looks and is honest */
  :: atomic { PERSON && up && !watching && !committed && st==needs_reconcile && SETTLED && (effects==0 || seen_for<=L) ->
       row(needs_reconcile, did_not_happen, failed); isfailed() }
  :: atomic { PERSON && up && !committed && st==indeterminate && SETTLED && (effects==0 || seen_for<=L) && JOBLESS ->
       row(indeterminate, did_not_happen, failed); isfailed() }
  :: atomic { PERSON && up && !committed && at==IDLE && effects==0 && QUIETNOW && st==needs_reconcile ->
       row(needs_reconcile, did_not_happen, failed); watching = 0; isfailed() }               /* force, rightly */
  :: atomic { PERSON && up && st==needs_reconcile -> denied = 1; row(needs_reconcile, happened, applied); watching = 0; confirmed = 0 }
  :: atomic { PERSON && up && st==indeterminate -> denied = 1; row(indeterminate, happened, applied); confirmed = 0 }
  :: atomic { PERSON && up && st==needs_reconcile && ASKS && !watching -> row(needs_reconcile, check_again, needs_reconcile); confirmed = 0 }
  :: atomic { PERSON && up && st==indeterminate && ASKS -> row(indeterminate, check_again, needs_reconcile); confirmed = 0 }
  :: atomic { PERSON && up && st==needs_reconcile -> row(needs_reconcile, skip, skipped); watching = 0; confirmed = 0 }
  :: atomic { PERSON && up && st==indeterminate -> row(indeterminate, skip, skipped); confirmed = 0 }
  :: atomic { PERSON && up && st==failed && at==IDLE -> row(failed, skip, skipped) }
#ifdef NEWKEY
  :: atomic { up && st==failed && at==IDLE && OPENGEN && gen<G -> row(failed, new_key, failed); gen++;
#ifndef BUG_QUEUE_KEPT
       queue = 0
#endif
       }
#endif
  /* time, a crash, a restart with recovery */
  :: atomic { !(up && openfor>=TOTAL && (at==RECORDED || at==PREPARED || at==SENT || at==HEAD || at==KNOWN)) && !OVERDUE ->
       for (i : 0 .. N) {
         if :: wire[i]==2 && (quiet[i] < S || quiet[i] <= D) -> quiet[i]++ :: else fi;
#ifdef BUG_SETTLE_FROM_CLAIM
         if :: i < nd -> upto(claimfor[i], S) :: else fi
#endif
       };
       i = 0; if :: effects -> upto(seen_for, L+1) :: else fi;
       if :: W > 0 -> upto(genage, W);
#ifndef NEVER_FORGETS
         upto(keyage[1], W); upto(keyage[G], W)
#endif
         :: else fi;
#ifdef WATCH
       upto(jobage, M);
#endif
       if :: at -> upto(openfor, TOTAL) :: else fi;
       if :: up -> upto(upfor, S) :: else fi; if :: confirmed -> upto(conffor, B) :: else -> conffor = 0 fi;
       printf("tick\n") }
#ifdef BUG_HIGH_WATER
  :: atomic { up && st==in_flight && nd==1 && at!=IDLE -> printf("CRASH, the claim is lost\n"); crash(); st = none }
#endif
  :: atomic { up -> printf("CRASH\n"); crash() }
  :: atomic { !up -> up = 1; printf("restart\n");
       if :: skip :: for (i : 0 .. N) { thisboot[i] = 0 }; i = 0 fi;                         /* the same boot, or another */
       recover() }
#ifndef BUG_SEND_FIRST
  :: atomic { st==in_flight && up && at==IDLE -> must(at != IDLE) }                         /* P4 */
#endif
  od;
stop: skip
}
