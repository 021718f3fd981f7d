"""One file of each form that keeps its tasks in Markdown, as people have it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Form:
    """A file of one form, and what a person reads in it."""

    kind: str
    path: str
    text: str
    open: tuple[str, ...]
    """The keys of the tasks that are to be done."""
    done: tuple[str, ...] = ()
    added: str = "\n- [ ] Added by a person\n"
    """What a person may write at the end."""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.rpartition("/")[2]


SPECKIT: Final = """\
---
description: "Task list"
---

# Tasks: Greeting

**Input**: Design documents from `/specs/001-greeting/`

## Format: `[ID] [P?] [Story] Description`

- **[P]**: can run in parallel

<!--
- [ ] T900 A sample of the template
-->

## Phase 1: Setup

**Purpose**: Structure

- [X] T001 Create the folders
- [ ] T002 [P] Configure the linter in ruff.toml
- [ ] T003 [P] Configure the types in
  mypy.ini

**Checkpoint**: ready

## Phase 2: User Story 1 - Say hello (Priority: P1)

**Goal**: A user is greeted

### Tests

- [ ] T004 [P] [US1] Test the model in tests/test_model.py

### Implementation

- [ ] **T005** [US1] Create the model in src/model.py (depends on T002, T003)
  - [ ] with a name
  - [ ] and a language
- [ ] T006 [US1] Manual testing per quickstart.md

## Dependencies

- [ ] All phases depend on Setup

## Parallel Example

```bash
- [ ] T901 not a task
```
"""
OPENSPEC: Final = """\
## 1. Command line

- [x] 1.1 Add the option
- [ ] 1.2 Add the help text
  - Acceptance: `grep -q hello help.txt`

## 2. Documentation

- [ ] 2.1 Describe the option
- [ ] Announce it
- [ ] 2.1 Describe it again
"""
KIRO: Final = """\
# Implementation Plan

- [x] 1. Set up the project
  - _Requirements: 1.1_
- [-] 2. Build the core
  - [x] 2.1 Create the model
    - _Requirements: 1.2_
  - [ ]* 2.2 Write property tests
    - **Property 1**
- [ ] 3. Checkpoint - Ensure all tests pass, ask the user if questions arise.
- [ ]* 4. Write end-to-end tests
- [ ] 5. Wire everything
- [ ] 5.1 (P) Wire the server
- [ ] 5.2 (P) Wire the client
- [~] 6. Ship it
"""
EXECPLAN: Final = """\
# Greet every user

This ExecPlan is a living document.

## Purpose / Big Picture

A user sees a greeting.

## Progress

- [x] (2026-01-05 10:00Z) Added the model.
- [ ] (2026-01-06 09:30Z) Add the view (completed: layout; remaining: text)
- [ ] Write the tests.

## Surprises & Discoveries

- Observation: none

## Decision Log

- [ ] not a task
"""
SUPERPOWERS: Final = """\
# Greeting Implementation Plan

> **For agentic workers:** REQUIRED SUB-SKILL: Use superpowers:executing-plans.

**Goal:** Greet every user

---

### Task 1: Model ✅

**Files:**
- Create: `src/model.py`

- [x] **Step 1: Write the failing test**

### Task 2: View

- [x] **Step 1: Write the failing test**

```markdown
### Task 9: not a task
```

- [ ] **Step 2: Run it**

### Task 3: Manual smoke test

**Step 1: Open the page**

## Success Criteria

- [ ] Users are greeted
"""
GSD: Final = """\
---
phase: 01-greeting
plan: 01
wave: 1
depends_on: []
---

<objective>
Greet every user.
</objective>

<tasks>

<task type="auto" status="done">
  <name>Task 1: Create the model</name>
  <action>Write it.</action>
</task>

<task type="auto">
  <name>Task 2: Create the view</name>
  <files>src/view.py</files>
  <action>Write it.</action>
  <verify>
    <automated>test -s view.txt</automated>
  </verify>
  <done>A view is there</done>
</task>

<task type="checkpoint:human-verify" gate="blocking">
  <what-built>The page</what-built>
  <how-to-verify>Visit it</how-to-verify>
</task>

</tasks>

<verification>
- [ ] it works
</verification>
"""
BACKLOG: Final = """\
---
id: task-7
title: Greet every user
status: To Do
assignee:
  - @ana
labels: []
dependencies: [task-3]
priority: high
---

## Description

Say hello.

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 `grep -q hello greet.txt` passes
- [x] #2 It is polite
<!-- AC:END -->
"""
TODO: Final = """\
# TODO

- greet every user, also those
  who come late
- ✅ add a model
- ~~add a view~~

## Completed

- the layout

## Ideas

- sing a song
"""

ROADMAP: Final = """\
# Roadmap: Greeting

## Overview

Every user is greeted.

## Phases

- [x] **Phase 1: Model** - What a greeting is (completed 2026-01-05)
- [ ] **Phase 2: View** - How it looks
- [ ] **Phase 3: Languages**

## Phase Details

### Phase 1: Model
**Goal**: A greeting has words
- [ ] 01-01-PLAN.md — Create the model

### Phase 2: View
**Goal**: A user sees the words
**Depends on**: Phase 1
**Success Criteria** (what must be TRUE):
  1. The page says hello
  2. `grep -q hello page.txt`

Plans:
- [x] 02-01-PLAN.md — Create the page
- [ ] 02-02-PLAN.md — Style it

### Phase 999.1: Sounds (BACKLOG)

- [ ] TBD
"""
FORMS: Final = (
    Form(
        kind="speckit",
        path="specs/001-greeting/tasks.md",
        text=SPECKIT,
        open=("T002", "T003", "T004", "T005", "T006"),
        done=("T001",),
    ),
    Form(
        kind="openspec",
        path="openspec/changes/add-greeting/tasks.md",
        text=OPENSPEC,
        open=("1.2", "2.1", "announce-it", "2-documentation/2.1"),
        done=("1.1",),
    ),
    Form(
        kind="kiro",
        path=".kiro/specs/greeting/tasks.md",
        text=KIRO,
        open=("2", "3", "5", "5.1", "5.2", "6"),
        done=("1",),
    ),
    Form(
        kind="execplan",
        path="docs/exec-plans/active/greeting.md",
        text=EXECPLAN,
        open=("add-the-view-completed-layout-remaining-text", "write-the-tests"),
        done=("added-the-model",),
        added="\nA person was here.\n",
    ),
    Form(
        kind="superpowers",
        path="docs/superpowers/plans/2026-01-05-greeting.md",
        text=SUPERPOWERS,
        open=("2", "3"),
        done=("1",),
        added="\nA person was here.\n",
    ),
    Form(
        kind="gsd",
        path=".planning/phases/01-greeting/01-01-PLAN.md",
        text=GSD,
        open=("2", "3"),
        done=("1",),
        added="\nA person was here.\n",
    ),
    Form(
        kind="gsd",
        path=".planning/ROADMAP.md",
        text=ROADMAP,
        open=("phase-2", "phase-3"),
        done=("phase-1",),
        added="\nA person was here.\n",
    ),
    Form(
        kind="backlog_md",
        path="backlog/tasks/task-7 - Greet-every-user.md",
        text=BACKLOG,
        open=("task-7",),
        added="\nA person was here.\n",
    ),
    Form(
        kind="todo_md",
        path="TODO.md",
        text=TODO,
        open=("greet-every-user-also-those-who-come-late",),
        done=("add-a-model", "add-a-view", "the-layout"),
        added="\nA person was here.\n",
    ),
)
