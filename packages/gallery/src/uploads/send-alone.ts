import { strings } from '../strings.ts'
import type { LaneContext } from './lane-context.ts'
import type { UploadEntry } from './upload-entry.ts'

/** Sends one file as a resumable upload, until it is stored, refused, paused or cancelled. */
export async function sendAlone(lane: LaneContext, entry: UploadEntry): Promise<void> {
  const { board, outcomes, options } = lane
  const loaded = await options.loadResumable().catch(() => null)
  if (loaded === null) return outcomes.failed(entry, strings.uploads.notLoaded)
  const { sendResumable, NoResponse } = loaded
  for (let tries = 1; await lane.ready(); tries += 1) {
    // It may have been paused or cancelled in the meantime.
    if (board.get(entry.id)?.state !== 'sending') return
    const file = await lane.reader.usable(entry)
    if (file === null) return
    const before = entry.sent
    const upload = sendResumable({
      file,
      name: entry.name,
      contentType: entry.contentType,
      endpoint: options.endpoint,
      token: options.token,
      uploadUrl: entry.uploadUrl,
      onUrl(url) {
        if (entry.uploadUrl === url) return
        entry.uploadUrl = url
        options.onSending([entry])
      },
      onProgress(sent) {
        request.movedAt = Date.now()
        if (board.get(entry.id)) board.update(entry, { sent })
        options.onChange()
      },
    })
    let stop = () => {}
    const stopped = new Promise<null>((resolve) => {
      stop = () => {
        upload.stop()
        resolve(null)
      }
    })
    const request = { entries: [entry], stop, cancel: stop, movedAt: Date.now() }
    lane.begin(request)
    try {
      const id = await Promise.race([upload.finished, stopped])
      if (id !== null) return outcomes.stored([entry], [{ id, url: null }])
    } catch (error) {
      // A file that changed on the disk ends a request just as a lost connection does.
      if (error instanceof NoResponse && (await lane.reader.usable(entry)) === null) return
      if (entry.sent > before) tries = 1
      const refused = await outcomes.patiently(error instanceof NoResponse ? null : error, tries)
      if (refused !== null) return outcomes.refused(entry, refused)
    }
  }
}
