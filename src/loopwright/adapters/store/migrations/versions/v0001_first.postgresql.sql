CREATE TABLE chains (
    id TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_chains PRIMARY KEY (id)
);
CREATE TABLE commands (
    id TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    verb TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    commit_sha TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    applied_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_commands PRIMARY KEY (id)
);
CREATE TABLE counters (
    id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    CONSTRAINT pk_counters PRIMARY KEY (id)
);
CREATE TABLE cursors (
    id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    CONSTRAINT pk_cursors PRIMARY KEY (id)
);
CREATE TABLE envelopes (
    id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    models TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    failure TEXT COLLATE "C",
    reason TEXT COLLATE "C" NOT NULL,
    until TIMESTAMP WITH TIME ZONE,
    closed_at TIMESTAMP WITH TIME ZONE,
    closings BIGINT NOT NULL,
    probe TEXT COLLATE "C",
    probed_at TIMESTAMP WITH TIME ZONE,
    windows TEXT NOT NULL,
    runs BIGINT NOT NULL,
    last_run_id TEXT COLLATE "C",
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_envelopes PRIMARY KEY (id)
);
CREATE TABLE events (
    n BIGINT NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C",
    loop TEXT COLLATE "C",
    plan TEXT COLLATE "C",
    task TEXT COLLATE "C",
    attempt TEXT COLLATE "C",
    run TEXT COLLATE "C",
    type TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    importance TEXT COLLATE "C" NOT NULL,
    payload TEXT NOT NULL,
    prev_hash TEXT COLLATE "C" NOT NULL,
    hash TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (n)
);
CREATE TABLE projects (
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    subfolder TEXT COLLATE "C" NOT NULL,
    spent_on TEXT COLLATE "C" NOT NULL,
    spent_micros BIGINT NOT NULL,
    unknown_costs BIGINT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_projects PRIMARY KEY (id)
);
CREATE TABLE source_debts (
    id TEXT COLLATE "C" NOT NULL,
    items TEXT NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    gone BOOLEAN NOT NULL,
    asked_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_source_debts PRIMARY KEY (id)
);
CREATE TABLE source_marks (
    id TEXT COLLATE "C" NOT NULL,
    marks TEXT NOT NULL,
    CONSTRAINT pk_source_marks PRIMARY KEY (id)
);
CREATE TABLE workers (
    id TEXT COLLATE "C" NOT NULL,
    host_id TEXT COLLATE "C" NOT NULL,
    boot_id TEXT COLLATE "C" NOT NULL,
    pid BIGINT NOT NULL,
    hostname TEXT COLLATE "C" NOT NULL,
    slots BIGINT NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    lease_until TIMESTAMP WITH TIME ZONE NOT NULL,
    controls BOOLEAN NOT NULL,
    project_id TEXT COLLATE "C",
    CONSTRAINT pk_workers PRIMARY KEY (id)
);
CREATE TABLE loops (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    source_kind TEXT COLLATE "C" NOT NULL,
    source_path TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C",
    priority BIGINT NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    resume_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_loops PRIMARY KEY (id),
    CONSTRAINT fk_loops_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE plans (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    loop_id TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    source_sha256 TEXT COLLATE "C" NOT NULL,
    base_ref TEXT COLLATE "C" NOT NULL,
    base_sha TEXT COLLATE "C" NOT NULL,
    branch TEXT COLLATE "C" NOT NULL,
    policy TEXT NOT NULL,
    gates TEXT NOT NULL,
    books TEXT NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    doc_sync TEXT NOT NULL,
    evaluation TEXT NOT NULL,
    environment TEXT,
    open_tasks BIGINT NOT NULL,
    failed_tasks BIGINT NOT NULL,
    fix_cycles BIGINT NOT NULL,
    verify_n BIGINT NOT NULL,
    verify_leg BIGINT NOT NULL,
    verify_fence BIGINT NOT NULL,
    verify_worker_id TEXT COLLATE "C",
    verify_run_id TEXT COLLATE "C",
    call_failures BIGINT NOT NULL,
    not_before TIMESTAMP WITH TIME ZONE,
    branch_moved_at TIMESTAMP WITH TIME ZONE,
    spent_micros BIGINT NOT NULL,
    unknown_costs BIGINT NOT NULL,
    verdict TEXT,
    result_sha TEXT COLLATE "C",
    outcome TEXT COLLATE "C",
    reason TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    executed_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    verified_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_plans PRIMARY KEY (id),
    CONSTRAINT fk_plans_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_plans_loop_id FOREIGN KEY(loop_id) REFERENCES loops (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE discoveries (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    attempt_id TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    recommendation TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    became TEXT COLLATE "C" NOT NULL,
    decided_by TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    decided_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_discoveries PRIMARY KEY (id),
    CONSTRAINT fk_discoveries_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_discoveries_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE finishes (
    id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    how TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    actor TEXT COLLATE "C" NOT NULL,
    tasks TEXT NOT NULL,
    leg BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    source_sha TEXT COLLATE "C",
    target_sha TEXT COLLATE "C",
    commit_sha TEXT COLLATE "C",
    tree TEXT COLLATE "C",
    verdict_id TEXT COLLATE "C",
    receipt TEXT COLLATE "C" NOT NULL,
    receipt_sha256 TEXT COLLATE "C",
    signed BOOLEAN NOT NULL,
    request_url TEXT COLLATE "C",
    request_n BIGINT,
    detail TEXT COLLATE "C" NOT NULL,
    call_failures BIGINT NOT NULL,
    not_before TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_finishes PRIMARY KEY (id),
    CONSTRAINT fk_finishes_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE questions (
    id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C" NOT NULL,
    loop_id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    options TEXT NOT NULL,
    "default" TEXT COLLATE "C",
    asked_by TEXT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    answer TEXT COLLATE "C",
    holds_for TEXT COLLATE "C" NOT NULL,
    answered_by TEXT COLLATE "C" NOT NULL,
    deadline TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    answered_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_questions PRIMARY KEY (id),
    CONSTRAINT fk_questions_project_id FOREIGN KEY(project_id) REFERENCES projects (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_questions_loop_id FOREIGN KEY(loop_id) REFERENCES loops (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_questions_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE runs (
    id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C",
    attempt_id TEXT COLLATE "C",
    role TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C",
    account TEXT COLLATE "C",
    model TEXT COLLATE "C",
    agent_version TEXT COLLATE "C",
    permission_mode TEXT COLLATE "C",
    permissions TEXT,
    sandbox TEXT COLLATE "C",
    sandbox_made_with TEXT,
    argv TEXT NOT NULL,
    prompt_sha256 TEXT COLLATE "C",
    template TEXT,
    host_id TEXT COLLATE "C",
    boot_id TEXT COLLATE "C",
    session_ref TEXT COLLATE "C",
    exit_code BIGINT,
    ended_by TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    failure TEXT COLLATE "C",
    retry_at TIMESTAMP WITH TIME ZONE,
    usage TEXT,
    cost_micros BIGINT,
    cost_estimated BOOLEAN NOT NULL,
    max_cost_micros BIGINT,
    output_sha256 TEXT COLLATE "C",
    output_bytes BIGINT,
    files_sha256 TEXT COLLATE "C" NOT NULL,
    reused_run_id TEXT COLLATE "C",
    verdict TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    ended_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_runs PRIMARY KEY (id),
    CONSTRAINT fk_runs_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE tasks (
    id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
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
    phase TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    complexity TEXT COLLATE "C" NOT NULL,
    prove BOOLEAN NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    unmet BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    call_failures BIGINT NOT NULL,
    races BIGINT NOT NULL,
    passed_over BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    agent TEXT COLLATE "C",
    model TEXT COLLATE "C",
    note TEXT COLLATE "C" NOT NULL,
    not_before TIMESTAMP WITH TIME ZONE,
    attempt_id TEXT COLLATE "C",
    first_base_sha TEXT COLLATE "C",
    failure TEXT COLLATE "C",
    failure_mark TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C",
    landed_sha TEXT COLLATE "C",
    taken_by TEXT COLLATE "C" NOT NULL,
    taken_dir TEXT COLLATE "C" NOT NULL,
    reviewed_by TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_tasks PRIMARY KEY (id),
    CONSTRAINT fk_tasks_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE verdicts (
    id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    tree TEXT COLLATE "C" NOT NULL,
    gate_key TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    verdict TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_verdicts PRIMARY KEY (id),
    CONSTRAINT fk_verdicts_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE attempts (
    id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    fence BIGINT NOT NULL,
    leg BIGINT NOT NULL,
    worker_id TEXT COLLATE "C",
    host_id TEXT COLLATE "C",
    agent TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C",
    note TEXT COLLATE "C" NOT NULL,
    evidence TEXT COLLATE "C" NOT NULL,
    base_sha TEXT COLLATE "C",
    workspace TEXT COLLATE "C",
    port_base BIGINT,
    run_id TEXT COLLATE "C",
    tip_sha TEXT COLLATE "C",
    touched TEXT NOT NULL,
    agent_sha TEXT COLLATE "C",
    candidate_parent TEXT COLLATE "C",
    candidate_sha TEXT COLLATE "C",
    candidate_tree TEXT COLLATE "C",
    books_sha TEXT COLLATE "C",
    verdict_id TEXT COLLATE "C",
    gate_files TEXT,
    review_id TEXT COLLATE "C",
    fix_turns BIGINT NOT NULL,
    qa TEXT,
    failure TEXT COLLATE "C",
    detail TEXT COLLATE "C" NOT NULL,
    wake_at TIMESTAMP WITH TIME ZONE,
    wait_reason TEXT COLLATE "C" NOT NULL,
    questions TEXT NOT NULL,
    account TEXT COLLATE "C",
    envelope_id TEXT COLLATE "C",
    stands_in TEXT COLLATE "C" NOT NULL,
    interrupt TEXT COLLATE "C" NOT NULL,
    cleaned_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_attempts PRIMARY KEY (id),
    CONSTRAINT fk_attempts_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_attempts_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE reviews (
    id TEXT COLLATE "C" NOT NULL,
    plan_id TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    attempt_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C",
    parent_sha TEXT COLLATE "C" NOT NULL,
    candidate_sha TEXT COLLATE "C" NOT NULL,
    patch_sha256 TEXT COLLATE "C" NOT NULL,
    shown_whole BOOLEAN NOT NULL,
    reasons TEXT NOT NULL,
    contradicted TEXT NOT NULL,
    tries BIGINT NOT NULL,
    problem TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    findings TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_reviews PRIMARY KEY (id),
    CONSTRAINT fk_reviews_plan_id FOREIGN KEY(plan_id) REFERENCES plans (id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT fk_reviews_task_id FOREIGN KEY(task_id) REFERENCES tasks (id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX ix_attempts_cleaned_at_state ON attempts (cleaned_at, state);
CREATE INDEX ix_attempts_plan_id_state ON attempts (plan_id, state);
CREATE INDEX ix_attempts_state ON attempts (state);
CREATE INDEX ix_commands_state ON commands (state);
CREATE INDEX ix_discoveries_plan_id ON discoveries (plan_id);
CREATE INDEX ix_discoveries_project_id_state ON discoveries (project_id, state);
CREATE INDEX ix_events_plan_n ON events (plan, n);
CREATE INDEX ix_events_run_n ON events (run, n);
CREATE INDEX ix_events_task_n ON events (task, n);
CREATE INDEX ix_finishes_plan_id ON finishes (plan_id);
CREATE INDEX ix_finishes_state ON finishes (state);
CREATE INDEX ix_loops_state ON loops (state);
CREATE INDEX ix_plans_loop_id ON plans (loop_id);
CREATE INDEX ix_plans_project_id_status ON plans (project_id, status);
CREATE INDEX ix_plans_status ON plans (status);
CREATE INDEX ix_questions_plan_id ON questions (plan_id);
CREATE INDEX ix_questions_project_id_kind_state ON questions (project_id, kind, state);
CREATE INDEX ix_questions_state ON questions (state);
CREATE INDEX ix_reviews_attempt_id ON reviews (attempt_id);
CREATE INDEX ix_reviews_plan_id ON reviews (plan_id);
CREATE INDEX ix_reviews_task_id_patch_sha256 ON reviews (task_id, patch_sha256);
CREATE INDEX ix_runs_attempt_id ON runs (attempt_id);
CREATE INDEX ix_runs_plan_id ON runs (plan_id);
CREATE INDEX ix_runs_state ON runs (state);
CREATE INDEX ix_runs_task_id ON runs (task_id);
CREATE INDEX ix_tasks_plan_id_key ON tasks (plan_id, key);
CREATE INDEX ix_tasks_plan_id_status_unmet_priority_position ON tasks (plan_id, status, unmet, priority, position);
CREATE INDEX ix_verdicts_plan_id_tree_gate_key ON verdicts (plan_id, tree, gate_key);
CREATE UNIQUE INDEX ix_attempts_task_id_n ON attempts (task_id, n);
CREATE UNIQUE INDEX ix_loops_project_id_source_path ON loops (project_id, source_path);
INSERT INTO counters (id, n) VALUES ('events', 0);
