/* Compensation: the API holds several objects where there should be one, because a condition
   of the promise was broken. Objects are numbered by age, 0 is the oldest. Each that is not
   tied to us strongly may be somebody else's. The process may crash at every moment; an undo
   may be lost, or take effect late.

   Switches: WANTED (a person resolves: it happened and is to be undone), and the bugs BUG_*.

   Properties. C1: what is undone is ours. C2: the object whose answer the script was given
   is never undone (unless WANTED). C3: of several that are ours, none is left without an
   obligation, a waiver, or an escalation. C4: an obligation that ended as done is gone.
   C5: one that was waived is never undone afterwards. C6: an undo that took effect is never
   reported as impossible. */

#define OBJ 3
mtype = { unknown, applied, indeterminate };
mtype st = unknown;

/* durable. ob: 0 none, 1 owed, 2 sent, 3 done, 4 waived, 5 given up and escalated */
byte ob[OBJ], tries[OBJ], kept = OBJ;
/* the API */
bit there[OBJ], ours[OBJ], late[OBJ], waived[OBJ];
/* volatile */
bit up = 1, seen;
byte at, cur, i;

#define ALLOURS ((!there[0] || ours[0]) && (!there[1] || ours[1]) && (!there[2] || ours[2]))
#define MORE(o) ((o < 2 && there[2] && ob[2]<3) || (o < 1 && there[1] && ob[1]<3))
#define FORGOTTEN(o) (there[o] && ours[o] && o != kept && ob[o]==0)

inline undone(o) {
  assert(ours[o]);                                       /* C1 */
  assert(o != kept);                                     /* C2 */
  assert(!waived[o]);                                    /* C5 */
  there[o] = 0 }

active proctype world() {
  atomic { for (i : 0 .. OBJ-1) { there[i] = 1; if :: ours[i] = 1 :: ours[i] = 0 fi }; ours[0] = 1;
           if :: there[2] = 0 :: skip fi; i = 0 }
  do
  /* what asking shows: several objects */
#ifdef WANTED
  :: atomic { up && st==unknown && ALLOURS -> there[1] = 0; there[2] = 0; st = applied; ob[0] = 1 }
#else
  :: atomic { up && st==unknown ->
       if
#ifdef BUG_FOREIGN_UNDONE
       :: st = applied; kept = 0; ob[1] = there[1]; ob[2] = there[2]
#else
       :: ALLOURS ->                                     /* the record and its obligations are one transaction */
#ifdef BUG_KEPT_NEWEST
          kept = 0; st = applied; ob[0] = 1; ob[1] = there[1]
#else
#ifdef BUG_OWED_LATER
          kept = 0; st = applied; seen = 1
#else
          kept = 0; st = applied; ob[1] = there[1]; ob[2] = there[2]
#endif
#endif
       :: !ALLOURS -> st = indeterminate                 /* a person decides */
#endif
       fi }
#endif
#ifdef BUG_OWED_LATER
  :: atomic { up && seen -> ob[1] = there[1]; ob[2] = there[2]; seen = 0 }
#endif
  /* undoing: an obligation is recorded as sent before it is, the newest first */
  :: atomic { up && at==0 -> select(i : 0 .. OBJ-1);
       if :: ob[i]==1 && !MORE(i) && tries[i]<2 -> ob[i] = 2; tries[i]++; cur = i; at = 1
          :: ob[i]==1 && tries[i]>=2 ->
#ifndef BUG_404_FAILS
             if :: there[i] -> ob[i] = 5 :: else -> ob[i] = 3 fi   /* it looks first */
#else
             assert(there[i]); ob[i] = 5                 /* C6 */
#endif
          :: else fi; i = 0 }
  :: atomic { at==1 && there[cur] -> undone(cur); at = 2 }
  :: atomic { at==1 && !there[cur] ->                    /* 404 */
#ifdef BUG_404_FAILS
       ob[cur] = 1; at = 0; cur = 0 }
#else
       at = 2 }
#endif
  :: atomic { at==1 && ob[cur]==2 -> late[cur] = there[cur]; ob[cur] = 1; at = 0; cur = 0 }   /* lost: may still take effect */
  :: atomic { at==2 -> assert(!there[cur]); if :: ob[cur]==2 -> ob[cur] = 3 :: else fi; at = 0; cur = 0 }   /* C4 */
  :: atomic { late[0] -> if :: there[0] -> undone(0) :: else fi; late[0] = 0 }
  :: atomic { late[1] -> if :: there[1] -> undone(1) :: else fi; late[1] = 0 }
  :: atomic { late[2] -> if :: there[2] -> undone(2) :: else fi; late[2] = 0 }
  /* a person waives one; not while an undo of it may still take effect */
#ifdef BUG_WAIVED_TOO_EARLY
  :: atomic { up -> select(i : 0 .. OBJ-1); if :: ob[i]==1 || ob[i]==2 -> waived[i] = there[i]; ob[i] = 4 :: else fi; i = 0 }
#else
  :: atomic { up -> select(i : 0 .. OBJ-1); if :: ob[i]==1 && !late[i] -> waived[i] = there[i]; ob[i] = 4 :: else fi; i = 0 }
#endif
  :: atomic { up -> up = 0; if :: at==1 -> late[cur] = there[cur] :: else fi; at = 0; cur = 0; seen = 0 }
  :: atomic { !up -> up = 1; for (i : 0 .. OBJ-1) { if :: ob[i]==2 -> ob[i] = 1 :: else fi }; i = 0;
#ifdef BUG_UNDONE_ANEW
       if :: st==applied -> for (i : 0 .. OBJ-1) { if :: there[i] && ob[i]>=3 -> ob[i] = 1 :: else fi }; i = 0 :: else fi;
#endif
       skip }
  /* at rest, nothing is forgotten */
  :: atomic { up && st==applied && at==0 && !seen -> assert(!FORGOTTEN(0) && !FORGOTTEN(1) && !FORGOTTEN(2)) }   /* C3 */
  od
}
