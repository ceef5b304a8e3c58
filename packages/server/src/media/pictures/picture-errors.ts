/** A worker ended during the task: the task exceeded its time or memory limit, or crashed the decoder. */
export class PictureOverLimits extends Error {
  override readonly name = 'PictureOverLimits'
  /** Whether it was the time limit, which a slow disk or store can cause too. */
  readonly isTimeout: boolean
  constructor(message: string, { isTimeout = false } = {}) {
    super(message)
    this.isTimeout = isTimeout
  }
}

/** The queue is full, the queue timeout expired, no process can be started, or the workers are closed. */
export class PictureWorkersBusy extends Error {
  override readonly name: string = 'PictureWorkersBusy'
}

/** A variant is not rendered yet, and the request waits no longer. The render continues. */
export class VariantPending extends Error {
  override readonly name = 'VariantPending'
}

/** A task of `runAhead` has given way to tasks of `run`, or found no free process. */
export class PictureTaskPreempted extends PictureWorkersBusy {
  override readonly name = 'PictureTaskPreempted'
}
