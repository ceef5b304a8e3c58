import { MediabucketError } from './mediabucket-error.ts'

/** A successful answer of the wrong shape. `path` names the faulty field, such as `links[3].url`; empty: the whole. */
export class ShapeError extends MediabucketError {
  override name = 'ShapeError'
  readonly path: string

  constructor(what: string, path: string, fault: string) {
    super(`The service did not answer ${what}: ${path || 'the answer'} ${fault}`)
    this.path = path
  }
}
