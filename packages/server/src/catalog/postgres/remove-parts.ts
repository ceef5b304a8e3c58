import type { UploadId } from '../../core/upload-id.ts'
import type { Session } from './session.ts'

/** Removes the parts and pieces of a finished upload. */
export async function removeParts(session: Session, id: UploadId): Promise<void> {
  await session.run('DELETE FROM upload_parts WHERE upload_id = $1', id)
  await session.run('DELETE FROM upload_pieces WHERE upload_id = $1', id)
}
