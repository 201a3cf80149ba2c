/* The gate of runs and items: three intended mutations of one workflow, 0 and 1 of item 0,
   2 of item 1; runs that open, take over, are refused, are stopped and finish; two requests
   at a time; crashes at every moment. What a sending does at the API is mutation.pml's
   matter: here each ends as applied, failed or unknown.

   Switches: BYITEM (block scope item, else workflow), and the bugs BUG_*.

   Properties, each asserted where a sending is recorded, since nothing is sent without.
   Q1: nothing goes on top of an unknown of its scope, nor of a sending whose sender was
   lost. Q2: a run that a stop refused sends nothing more. Q3: nor does one that was taken
   over or has ended. Q4: a run that finished as done leaves nothing in flight or unknown.
   Q5: a mutation belongs to the item's current attempt, and a new attempt starts with
   nothing unresolved. Q6: an item that is done has no new effects.

   rowof(mutation, from, trigger, to) is a move of the ledger's transition table, as row is
   in mutation.pml. */

#ifndef RUNS
#define RUNS 2                         /* runs at most */
#endif
#define M 3

/* Of what is unknown, who moves it on is mutation.pml's matter: here it is needs_reconcile. */
#define none            0
#define in_flight       1
#define applied         2
#define failed          3
#define needs_reconcile 4

#define RUNNING  1
#define ABORTED  2
#define PAUSED   3
#define FINISHED 4

/* durable */
byte st[M], by[M], life[RUNS], item[RUNS], att[RUNS], attempt[2] = 1, opened;
bit done[2];
/* what only this page knows */
bit refused[RUNS], taken[RUNS], lost[M];
/* volatile. at: 0 idle, 1 passed the first gate, 2 recorded, 3 sent */
bit up = 1, listening = 1;
byte at[2], r[2], j[2], i;

#define ITEM(m) (m == 2 -> 1 : 0)
#ifdef BYITEM
#define SAME(a, b) (ITEM(a) == ITEM(b))
#else
#define SAME(a, b) 1
#endif
#define STOPS(a, b) (a != b && SAME(a, b) && st[a] == needs_reconcile)
#define STOPPED(m)  (STOPS(0, m) || STOPS(1, m) || STOPS(2, m))
#define OPENOF(t)   ((life[0]==RUNNING && item[0]==t) || (life[1]==RUNNING && item[1]==t) || (life[RUNS-1]==RUNNING && item[RUNS-1]==t))
#define BUSY(m, t)  (ITEM(m) == t && (st[m] == in_flight || st[m] == needs_reconcile))
#define QUIET(t)    (!BUSY(0, t) && !BUSY(1, t) && !BUSY(2, t))
#define ANY         (st[0] == needs_reconcile || st[1] == needs_reconcile || st[2] == needs_reconcile)
#define OF(m, q)    (by[m] == q + 1 && (st[m] == in_flight || st[m] == needs_reconcile))
#define INHAND(q)   ((at[0] && r[0] == q) || (at[1] && r[1] == q))

#ifdef BUG_DONE_AGAIN
#define MAYCLAIM(h) (att[r[h]] == attempt[ITEM(j[h])])
#else
#ifdef BUG_OLD_ATTEMPT
#define MAYCLAIM(h) (!done[ITEM(j[h])])
#else
#define MAYCLAIM(h) (!done[ITEM(j[h])] && att[r[h]] == attempt[ITEM(j[h])])
#endif
#endif

#define rowof(m, from, on, to) assert(st[m] == from); st[m] = to

inline idle(h) { at[h] = 0; r[h] = 0; j[h] = 0 }
inline anew(m) { st[m] = none; by[m] = 0 }               /* another mutation, without a record */
inline refuse(q) { refused[q] = 1; life[q] = ABORTED }

inline open(t) {
  if
  :: OPENOF(t) ->                                        /* busy, or taken over */
     if
     :: skip
     :: opened < RUNS ->
        for (i : 0 .. RUNS-1) { if :: life[i]==RUNNING && item[i]==t -> taken[i] = 1;
#ifndef BUG_TAKEN_OVER_GOES_ON
           life[i] = ABORTED
#endif
           :: else fi };
        i = 0; life[opened] = RUNNING; item[opened] = t; att[opened] = attempt[t]; opened++
     :: else -> skip
     fi
  :: else -> life[opened] = RUNNING; item[opened] = t; att[opened] = attempt[t]; opened++
  fi }

inline request(h) {
  if
  :: at[h]==0 && up && listening ->                      /* a run asks: the gate for every request */
     select(i : 0 .. RUNS-1); r[h] = i; select(i : 0 .. M-1); j[h] = i; i = 0;
     if
     :: life[r[h]]==RUNNING && item[r[h]]==ITEM(j[h]) && !STOPPED(j[h]) -> at[h] = 1
     :: life[r[h]]==RUNNING && item[r[h]]==ITEM(j[h]) && STOPPED(j[h]) ->
#ifdef BUG_REFUSED_GOES_ON
        refused[r[h]] = 1;
#else
        refuse(r[h]);
#endif
        idle(h)
     :: else -> idle(h)
     fi
  :: at[h]==1 ->                                         /* the claim: one transaction, with the gate in it */
     if
#ifdef BUG_GATE_OUTSIDE
     :: st[j[h]]==none || st[j[h]]==failed ->
#else
     :: life[r[h]]==RUNNING && STOPPED(j[h]) -> refuse(r[h]); idle(h)
     :: life[r[h]]==RUNNING && !STOPPED(j[h]) && (st[j[h]]==none || st[j[h]]==failed) && MAYCLAIM(h) ->
#endif
        assert(!(STOPPED(j[h])));                        /* Q1 */
        assert(!((lost[0] && j[h]!=0 && SAME(0, j[h])) || (lost[1] && j[h]!=1 && SAME(1, j[h])) || (lost[2] && j[h]!=2 && SAME(2, j[h]))));
        assert(!refused[r[h]]);                          /* Q2 */
        assert(!taken[r[h]] && life[r[h]]==RUNNING);      /* Q3 */
        assert(att[r[h]] == attempt[ITEM(j[h])]);        /* Q5 */
        assert(!done[ITEM(j[h])]);                       /* Q6 */
        if
        :: st[j[h]]==none -> rowof(j[h], none, claim, in_flight)
        :: else -> rowof(j[h], failed, claim, in_flight)
        fi;
        by[j[h]] = r[h] + 1; at[h] = 2
     :: else -> idle(h)
     fi
  :: at[h]==2 -> at[h] = 3
  :: at[h]==3 -> rowof(j[h], in_flight, success, applied); idle(h)
  :: at[h]==3 -> rowof(j[h], in_flight, failure, failed); if :: skip :: life[r[h]]==RUNNING -> life[r[h]] = ABORTED fi; idle(h)
  :: at[h]==3 -> rowof(j[h], in_flight, unknown, needs_reconcile); if :: life[r[h]]==RUNNING -> life[r[h]] = PAUSED :: else fi; idle(h)
  fi }

active proctype world() {
  do
  :: atomic { up && listening && opened<RUNS && !ANY && !done[0] -> open(0) }
  :: atomic { up && listening && opened<RUNS && !ANY && !done[1] -> open(1) }
  :: atomic { request(0) }
  :: atomic { request(1) }
  /* a run finishes as done, and with it its item */
  :: atomic { up && opened -> select(i : 0 .. RUNS-1);
       if
#ifdef BUG_FINISH_EARLY
       :: life[i]==RUNNING ->
#else
       :: life[i]==RUNNING && !OF(0, i) && !OF(1, i) && !OF(2, i) && !INHAND(i) && QUIET(item[i]) ->
#endif
          assert(!OF(0, i) && !OF(1, i) && !OF(2, i));   /* Q4 */
          life[i] = FINISHED;
          if :: done[item[i]] = 1 :: skip fi             /* --keep-open */
       :: life[i]==RUNNING -> life[i] = ABORTED            /* its time limit, or its host */
       :: else
       fi; i = 0 }
  /* a person: the item is done, whatever run is open */
  :: atomic { up && !done[0] && QUIET(0) -> done[0] = 1 }
  /* reconciling, or a person: the true end */
  :: atomic { up -> select(i : 0 .. M-1);
       if
       :: st[i]==needs_reconcile ->
          if
          :: rowof(i, needs_reconcile, observed_applied, applied)
          :: rowof(i, needs_reconcile, observed_absent, failed)
          fi
       :: else
       fi; i = 0 }
  /* a person: a new attempt of an item */
  :: atomic { up -> select(i : 0 .. 1);
       if
#ifdef BUG_ATTEMPT_EARLY
       :: attempt[i]<2 ->
#else
       :: attempt[i]<2 && QUIET(i) ->
#endif
          assert(QUIET(i));                              /* Q5 */
          attempt[i]++; done[i] = 0;
          if :: i==0 -> anew(0); anew(1) :: else -> anew(2) fi
       :: else
       fi; i = 0 }
  :: atomic { up -> up = 0; idle(0); idle(1);
       for (i : 0 .. M-1) { if :: st[i]==in_flight -> lost[i] = 1 :: else fi }; i = 0;
#ifdef BUG_LISTEN_FIRST
       listening = 1 }
#else
       listening = 0 }
#endif
  :: atomic { !up -> up = 1 }
  /* recovery, before anything listens */
  :: atomic { up && (lost[0] || lost[1] || lost[2] || !listening) ->
       for (i : 0 .. M-1) { if :: lost[i] && st[i]==in_flight -> rowof(i, in_flight, owner_lost, needs_reconcile) :: else fi; lost[i] = 0 }; i = 0; listening = 1 }
  od
}
