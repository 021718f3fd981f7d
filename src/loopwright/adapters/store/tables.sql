-- Made by `make docs` from core/rows/model.py and adapters/store/tables.py. Edit those, not this.
CREATE TABLE acknowledgements (
    id TEXT NOT NULL,
    actor TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_acknowledgements PRIMARY KEY (id)
);
CREATE TABLE actions (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    loop_id TEXT,
    plan_id TEXT,
    task_id TEXT,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    run_id TEXT,
    state TEXT NOT NULL,
    about TEXT NOT NULL,
    result TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    undone_at VARCHAR(27),
    undone_by TEXT NOT NULL,
    CONSTRAINT pk_actions PRIMARY KEY (id),
    CONSTRAINT fk_actions_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE attempt_failures (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    failure TEXT NOT NULL,
    cause TEXT,
    signature TEXT NOT NULL,
    step TEXT NOT NULL,
    test TEXT NOT NULL,
    file TEXT NOT NULL,
    error TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_attempt_failures PRIMARY KEY (id),
    CONSTRAINT fk_attempt_failures_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_attempt_failures_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_attempt_failures_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE attempts (
    id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    state TEXT NOT NULL,
    fence BIGINT NOT NULL,
    leg BIGINT NOT NULL,
    worker_id TEXT,
    host_id TEXT,
    agent TEXT NOT NULL,
    model TEXT,
    note TEXT NOT NULL,
    evidence TEXT NOT NULL,
    base_sha TEXT,
    workspace TEXT,
    port_base BIGINT,
    run_id TEXT,
    tip_sha TEXT,
    touched TEXT NOT NULL,
    agent_sha TEXT,
    candidate_parent TEXT,
    candidate_sha TEXT,
    candidate_tree TEXT,
    books_sha TEXT,
    verdict_id TEXT,
    gate_files TEXT,
    review_id TEXT,
    fix_turns BIGINT NOT NULL,
    qa TEXT,
    failure TEXT,
    detail TEXT NOT NULL,
    wake_at VARCHAR(27),
    wait_reason TEXT NOT NULL,
    questions TEXT NOT NULL,
    account TEXT,
    envelope_id TEXT,
    stands_in TEXT NOT NULL,
    interrupt TEXT NOT NULL,
    cleaned_at VARCHAR(27),
    created_at VARCHAR(27) NOT NULL,
    updated_at VARCHAR(27) NOT NULL,
    ended_at VARCHAR(27),
    healing TEXT,
    advice TEXT NOT NULL,
    quarantined TEXT,
    CONSTRAINT pk_attempts PRIMARY KEY (id),
    CONSTRAINT fk_attempts_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_attempts_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE chains (
    id TEXT NOT NULL,
    hash TEXT NOT NULL,
    CONSTRAINT pk_chains PRIMARY KEY (id)
);
CREATE TABLE charges (
    id TEXT NOT NULL,
    token_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    depth BIGINT,
    CONSTRAINT pk_charges PRIMARY KEY (id)
);
CREATE TABLE commands (
    id TEXT NOT NULL,
    actor TEXT NOT NULL,
    verb TEXT NOT NULL,
    target TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL,
    result TEXT NOT NULL,
    commit_sha TEXT,
    created_at VARCHAR(27) NOT NULL,
    applied_at VARCHAR(27),
    CONSTRAINT pk_commands PRIMARY KEY (id)
);
CREATE TABLE counters (
    id TEXT NOT NULL,
    n BIGINT NOT NULL,
    CONSTRAINT pk_counters PRIMARY KEY (id)
);
CREATE TABLE cursors (
    id TEXT NOT NULL,
    n BIGINT NOT NULL,
    CONSTRAINT pk_cursors PRIMARY KEY (id)
);
CREATE TABLE dead_letters (
    id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    type TEXT NOT NULL,
    error TEXT NOT NULL,
    failures BIGINT NOT NULL,
    died_at VARCHAR(27) NOT NULL,
    replay_at VARCHAR(27),
    CONSTRAINT pk_dead_letters PRIMARY KEY (id)
);
CREATE TABLE discoveries (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    title TEXT NOT NULL,
    reason TEXT NOT NULL,
    recommendation TEXT NOT NULL,
    state TEXT NOT NULL,
    became TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    decided_at VARCHAR(27),
    CONSTRAINT pk_discoveries PRIMARY KEY (id),
    CONSTRAINT fk_discoveries_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_discoveries_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE envelopes (
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    account TEXT NOT NULL,
    models TEXT NOT NULL,
    state TEXT NOT NULL,
    failure TEXT,
    reason TEXT NOT NULL,
    until VARCHAR(27),
    closed_at VARCHAR(27),
    closings BIGINT NOT NULL,
    probe TEXT,
    probed_at VARCHAR(27),
    windows TEXT NOT NULL,
    runs BIGINT NOT NULL,
    last_run_id TEXT,
    created_at VARCHAR(27) NOT NULL,
    updated_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_envelopes PRIMARY KEY (id)
);
CREATE TABLE events (
    n BIGINT NOT NULL,
    id TEXT NOT NULL,
    project TEXT,
    loop TEXT,
    "plan" TEXT,
    task TEXT,
    attempt TEXT,
    run TEXT,
    type TEXT NOT NULL,
    version BIGINT NOT NULL,
    at VARCHAR(27) NOT NULL,
    actor TEXT NOT NULL,
    importance TEXT NOT NULL,
    payload TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (n)
);
CREATE TABLE finishes (
    id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    how TEXT NOT NULL,
    state TEXT NOT NULL,
    actor TEXT NOT NULL,
    tasks TEXT NOT NULL,
    leg BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    source_sha TEXT,
    target_sha TEXT,
    commit_sha TEXT,
    tree TEXT,
    verdict_id TEXT,
    receipt TEXT NOT NULL,
    receipt_sha256 TEXT,
    signed BOOLEAN NOT NULL,
    request_url TEXT,
    request_n BIGINT,
    detail TEXT NOT NULL,
    call_failures BIGINT NOT NULL,
    not_before VARCHAR(27),
    created_at VARCHAR(27) NOT NULL,
    updated_at VARCHAR(27) NOT NULL,
    finished_at VARCHAR(27),
    CONSTRAINT pk_finishes PRIMARY KEY (id),
    CONSTRAINT fk_finishes_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE healings (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    step TEXT NOT NULL,
    state TEXT NOT NULL,
    cause TEXT NOT NULL,
    signature TEXT NOT NULL,
    because TEXT NOT NULL,
    attempt_id TEXT,
    created_at VARCHAR(27) NOT NULL,
    ended_at VARCHAR(27),
    about TEXT NOT NULL,
    CONSTRAINT pk_healings PRIMARY KEY (id),
    CONSTRAINT fk_healings_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_healings_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_healings_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE holds (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    loop_id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT,
    lock TEXT NOT NULL,
    paths TEXT NOT NULL,
    state TEXT NOT NULL,
    waits_for TEXT NOT NULL,
    "after" TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_holds PRIMARY KEY (id),
    CONSTRAINT fk_holds_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_holds_loop_id FOREIGN KEY(loop_id) REFERENCES loops (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_holds_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE kept_replies (
    id TEXT NOT NULL,
    request_sha256 TEXT NOT NULL,
    status BIGINT NOT NULL,
    body TEXT NOT NULL,
    server TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_kept_replies PRIMARY KEY (id)
);
CREATE TABLE lesson_uses (
    id TEXT NOT NULL,
    lesson_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    project_id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    given BOOLEAN NOT NULL,
    passed BOOLEAN,
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_lesson_uses PRIMARY KEY (id),
    CONSTRAINT fk_lesson_uses_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_lesson_uses_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE lessons (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT NOT NULL,
    version BIGINT NOT NULL,
    signature TEXT NOT NULL,
    files TEXT NOT NULL,
    task_type TEXT NOT NULL,
    evidence TEXT NOT NULL,
    proposed_by TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    tried_since VARCHAR(27),
    expires_at VARCHAR(27),
    learned_from TEXT NOT NULL,
    CONSTRAINT pk_lessons PRIMARY KEY (id),
    CONSTRAINT fk_lessons_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE loops (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    source_path TEXT NOT NULL,
    state TEXT NOT NULL,
    plan_id TEXT,
    priority BIGINT NOT NULL,
    reason TEXT NOT NULL,
    resume_at VARCHAR(27),
    created_at VARCHAR(27) NOT NULL,
    updated_at VARCHAR(27) NOT NULL,
    start TEXT,
    settings TEXT,
    deleted_at VARCHAR(27),
    CONSTRAINT pk_loops PRIMARY KEY (id),
    CONSTRAINT fk_loops_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE plans (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    loop_id TEXT NOT NULL,
    title TEXT NOT NULL,
    status TEXT NOT NULL,
    source_sha256 TEXT NOT NULL,
    base_ref TEXT NOT NULL,
    base_sha TEXT NOT NULL,
    branch TEXT NOT NULL,
    policy TEXT NOT NULL,
    gates TEXT NOT NULL,
    books TEXT NOT NULL,
    context TEXT NOT NULL,
    doc_sync TEXT NOT NULL,
    evaluation TEXT NOT NULL,
    environment TEXT,
    open_tasks BIGINT NOT NULL,
    failed_tasks BIGINT NOT NULL,
    fix_cycles BIGINT NOT NULL,
    verify_n BIGINT NOT NULL,
    verify_leg BIGINT NOT NULL,
    verify_fence BIGINT NOT NULL,
    verify_run_id TEXT,
    call_failures BIGINT NOT NULL,
    not_before VARCHAR(27),
    branch_moved_at VARCHAR(27),
    spent_micros BIGINT NOT NULL,
    unknown_costs BIGINT NOT NULL,
    verdict TEXT,
    result_sha TEXT,
    outcome TEXT,
    reason TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    updated_at VARCHAR(27) NOT NULL,
    executed_at VARCHAR(27),
    completed_at VARCHAR(27),
    verified_at VARCHAR(27),
    documents TEXT NOT NULL,
    verify_asked_at VARCHAR(27),
    evaluating BOOLEAN NOT NULL,
    wish TEXT,
    made_for TEXT,
    packet_id TEXT,
    source_run_id TEXT,
    replaces TEXT,
    CONSTRAINT pk_plans PRIMARY KEY (id),
    CONSTRAINT fk_plans_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_plans_loop_id FOREIGN KEY(loop_id) REFERENCES loops (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE projects (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    subfolder TEXT NOT NULL,
    spent_on TEXT NOT NULL,
    spent_micros BIGINT NOT NULL,
    unknown_costs BIGINT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    environment TEXT,
    state_folder TEXT NOT NULL,
    CONSTRAINT pk_projects PRIMARY KEY (id)
);
CREATE TABLE questions (
    id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    loop_id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    text TEXT NOT NULL,
    options TEXT NOT NULL,
    "default" TEXT,
    asked_by TEXT NOT NULL,
    state TEXT NOT NULL,
    answer TEXT,
    holds_for TEXT NOT NULL,
    answered_by TEXT NOT NULL,
    deadline VARCHAR(27),
    created_at VARCHAR(27) NOT NULL,
    answered_at VARCHAR(27),
    CONSTRAINT pk_questions PRIMARY KEY (id),
    CONSTRAINT fk_questions_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_questions_loop_id FOREIGN KEY(loop_id) REFERENCES loops (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_questions_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE reviews (
    id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    state TEXT NOT NULL,
    run_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT,
    parent_sha TEXT NOT NULL,
    candidate_sha TEXT NOT NULL,
    patch_sha256 TEXT NOT NULL,
    shown_whole BOOLEAN NOT NULL,
    reasons TEXT NOT NULL,
    contradicted TEXT NOT NULL,
    tries BIGINT NOT NULL,
    problem TEXT NOT NULL,
    summary TEXT NOT NULL,
    findings TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    ended_at VARCHAR(27),
    CONSTRAINT pk_reviews PRIMARY KEY (id),
    CONSTRAINT fk_reviews_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_reviews_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE runs (
    id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT,
    attempt_id TEXT,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    label TEXT NOT NULL,
    agent TEXT,
    account TEXT,
    model TEXT,
    agent_version TEXT,
    permission_mode TEXT,
    permissions TEXT,
    sandbox TEXT,
    sandbox_made_with TEXT,
    argv TEXT NOT NULL,
    prompt_sha256 TEXT,
    template TEXT,
    host_id TEXT,
    boot_id TEXT,
    session_ref TEXT,
    exit_code BIGINT,
    ended_by TEXT NOT NULL,
    summary TEXT NOT NULL,
    failure TEXT,
    retry_at VARCHAR(27),
    usage TEXT,
    cost_micros BIGINT,
    cost_estimated BOOLEAN NOT NULL,
    max_cost_micros BIGINT,
    output_sha256 TEXT,
    output_bytes BIGINT,
    files_sha256 TEXT NOT NULL,
    reused_run_id TEXT,
    verdict TEXT,
    created_at VARCHAR(27) NOT NULL,
    started_at VARCHAR(27),
    ended_at VARCHAR(27),
    CONSTRAINT pk_runs PRIMARY KEY (id),
    CONSTRAINT fk_runs_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE source_debts (
    id TEXT NOT NULL,
    items TEXT NOT NULL,
    reason TEXT NOT NULL,
    gone BOOLEAN NOT NULL,
    asked_at VARCHAR(27),
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_source_debts PRIMARY KEY (id)
);
CREATE TABLE source_marks (
    id TEXT NOT NULL,
    marks TEXT NOT NULL,
    CONSTRAINT pk_source_marks PRIMARY KEY (id)
);
CREATE TABLE tasks (
    id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    "key" TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    criteria TEXT NOT NULL,
    acceptance TEXT NOT NULL,
    held_out TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    dependents TEXT NOT NULL,
    scope TEXT NOT NULL,
    approved TEXT NOT NULL,
    touched TEXT NOT NULL,
    priority BIGINT NOT NULL,
    position BIGINT NOT NULL,
    phase TEXT NOT NULL,
    type TEXT NOT NULL,
    complexity TEXT NOT NULL,
    prove BOOLEAN NOT NULL,
    status TEXT NOT NULL,
    origin TEXT NOT NULL,
    unmet BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    call_failures BIGINT NOT NULL,
    races BIGINT NOT NULL,
    passed_over BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    agent TEXT,
    model TEXT,
    note TEXT NOT NULL,
    not_before VARCHAR(27),
    attempt_id TEXT,
    first_base_sha TEXT,
    failure TEXT,
    failure_mark TEXT NOT NULL,
    reason TEXT NOT NULL,
    outcome TEXT,
    landed_sha TEXT,
    taken_by TEXT NOT NULL,
    taken_dir TEXT NOT NULL,
    reviewed_by TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    updated_at VARCHAR(27) NOT NULL,
    completed_at VARCHAR(27),
    "after" TEXT NOT NULL,
    followers TEXT NOT NULL,
    early BOOLEAN NOT NULL,
    manual BOOLEAN NOT NULL,
    section TEXT NOT NULL,
    CONSTRAINT pk_tasks PRIMARY KEY (id),
    CONSTRAINT fk_tasks_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE tokens (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    scope TEXT NOT NULL,
    projects TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    revoked_at VARCHAR(27),
    limit_micros BIGINT,
    nesting BIGINT,
    maker_id TEXT,
    steers BOOLEAN NOT NULL,
    CONSTRAINT pk_tokens PRIMARY KEY (id)
);
CREATE TABLE troubles (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    project_id TEXT NOT NULL,
    loop_id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    task_id TEXT,
    run_id TEXT,
    message TEXT NOT NULL,
    hint TEXT NOT NULL,
    since VARCHAR(27) NOT NULL,
    CONSTRAINT pk_troubles PRIMARY KEY (id),
    CONSTRAINT fk_troubles_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_troubles_loop_id FOREIGN KEY(loop_id) REFERENCES loops (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_troubles_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE verdicts (
    id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    gate_key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    verdict TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_verdicts PRIMARY KEY (id),
    CONSTRAINT fk_verdicts_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE watched (
    id TEXT NOT NULL,
    plan_id TEXT NOT NULL,
    progress TEXT NOT NULL,
    since VARCHAR(27) NOT NULL,
    looks BIGINT NOT NULL,
    idle_looks BIGINT NOT NULL,
    seen_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_watched PRIMARY KEY (id),
    CONSTRAINT fk_watched_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE webhooks (
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    projects TEXT NOT NULL,
    loop TEXT,
    types TEXT NOT NULL,
    cursor BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    error TEXT NOT NULL,
    retry_at VARCHAR(27),
    off_at VARCHAR(27),
    sender TEXT NOT NULL,
    sender_until VARCHAR(27),
    created_by TEXT NOT NULL,
    created_at VARCHAR(27) NOT NULL,
    target TEXT,
    CONSTRAINT pk_webhooks PRIMARY KEY (id)
);
CREATE TABLE workers (
    id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    pid BIGINT NOT NULL,
    hostname TEXT NOT NULL,
    slots BIGINT NOT NULL,
    version TEXT NOT NULL,
    started_at VARCHAR(27) NOT NULL,
    lease_until VARCHAR(27) NOT NULL,
    controls BOOLEAN NOT NULL,
    project_id TEXT,
    CONSTRAINT pk_workers PRIMARY KEY (id)
);
CREATE INDEX ix_actions_created_at_id ON actions (created_at, id);
CREATE INDEX ix_actions_project_id_created_at_id ON actions (project_id, created_at, id);
CREATE INDEX ix_attempt_failures_project_id_signature ON attempt_failures (project_id, signature);
CREATE INDEX ix_attempt_failures_signature ON attempt_failures (signature);
CREATE INDEX ix_attempt_failures_task_id ON attempt_failures (task_id);
CREATE INDEX ix_attempts_cleaned_at_state ON attempts (cleaned_at, state);
CREATE INDEX ix_attempts_plan_id_state ON attempts (plan_id, state);
CREATE INDEX ix_attempts_quarantined ON attempts (quarantined);
CREATE INDEX ix_attempts_state ON attempts (state);
CREATE INDEX ix_charges_subject_id ON charges (subject_id);
CREATE INDEX ix_charges_token_id ON charges (token_id);
CREATE INDEX ix_commands_state ON commands (state);
CREATE INDEX ix_dead_letters_webhook_id_replay_at ON dead_letters (webhook_id, replay_at);
CREATE INDEX ix_discoveries_plan_id ON discoveries (plan_id);
CREATE INDEX ix_discoveries_project_id_state ON discoveries (project_id, state);
CREATE INDEX ix_events_plan_n ON events ("plan", n);
CREATE INDEX ix_events_run_n ON events (run, n);
CREATE INDEX ix_events_task_n ON events (task, n);
CREATE INDEX ix_finishes_plan_id ON finishes (plan_id);
CREATE INDEX ix_finishes_state ON finishes (state);
CREATE INDEX ix_healings_plan_id ON healings (plan_id);
CREATE INDEX ix_holds_plan_id ON holds (plan_id);
CREATE INDEX ix_kept_replies_created_at ON kept_replies (created_at);
CREATE INDEX ix_lesson_uses_attempt_id ON lesson_uses (attempt_id);
CREATE INDEX ix_lesson_uses_lesson_id ON lesson_uses (lesson_id);
CREATE INDEX ix_lessons_project_id_state ON lessons (project_id, state);
CREATE INDEX ix_lessons_state ON lessons (state);
CREATE INDEX ix_loops_state ON loops (state);
CREATE INDEX ix_plans_created_at_id ON plans (created_at, id);
CREATE INDEX ix_plans_loop_id ON plans (loop_id);
CREATE INDEX ix_plans_made_for ON plans (made_for);
CREATE INDEX ix_plans_project_id_created_at_id ON plans (project_id, created_at, id);
CREATE INDEX ix_plans_project_id_status ON plans (project_id, status);
CREATE INDEX ix_plans_status ON plans (status);
CREATE INDEX ix_questions_plan_id ON questions (plan_id);
CREATE INDEX ix_questions_project_id_kind_state ON questions (project_id, kind, state);
CREATE INDEX ix_questions_state ON questions (state);
CREATE INDEX ix_reviews_attempt_id ON reviews (attempt_id);
CREATE INDEX ix_reviews_plan_id ON reviews (plan_id);
CREATE INDEX ix_reviews_task_id_patch_sha256 ON reviews (task_id, patch_sha256);
CREATE INDEX ix_runs_attempt_id ON runs (attempt_id);
CREATE INDEX ix_runs_plan_id_created_at ON runs (plan_id, created_at);
CREATE INDEX ix_runs_state ON runs (state);
CREATE INDEX ix_runs_task_id ON runs (task_id);
CREATE INDEX ix_tasks_plan_id_key ON tasks (plan_id, "key");
CREATE INDEX ix_tasks_plan_id_manual_status ON tasks (plan_id, manual, status);
CREATE INDEX ix_tasks_plan_id_status_unmet_priority_position ON tasks (plan_id, status, unmet, priority, position);
CREATE INDEX ix_tokens_sha256 ON tokens (sha256);
CREATE INDEX ix_verdicts_plan_id_tree_gate_key ON verdicts (plan_id, tree, gate_key);
CREATE UNIQUE INDEX ix_attempt_failures_attempt_id ON attempt_failures (attempt_id);
CREATE UNIQUE INDEX ix_attempts_task_id_n ON attempts (task_id, n);
CREATE UNIQUE INDEX ix_dead_letters_webhook_id_n ON dead_letters (webhook_id, n);
CREATE UNIQUE INDEX ix_healings_task_id_n ON healings (task_id, n);
CREATE UNIQUE INDEX ix_lesson_uses_lesson_id_version_task_id ON lesson_uses (lesson_id, version, task_id);
CREATE UNIQUE INDEX ix_loops_project_id_source_path ON loops (project_id, source_path);
CREATE TABLE schema_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT schema_version_pkc PRIMARY KEY (version_num));
INSERT INTO counters (id, n) VALUES ('events', 0);
