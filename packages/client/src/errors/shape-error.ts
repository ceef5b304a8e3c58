import { MediabucketError } from './mediabucket-error.ts'

/** A successful response of the wrong shape. `path` is the invalid field, such as `links[3].url`; empty for the whole body. */
export class ShapeError extends MediabucketError {
  override name = 'ShapeError'
  readonly path: string

  constructor(what: string, path: string, fault: string) {
    super(`The response is not ${what}: ${path || 'the response'} ${fault}`)
    this.path = path
  }
}
