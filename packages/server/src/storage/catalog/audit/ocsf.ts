import type { Actor } from '../../../core/token-rules.ts'
import { version } from '../../../core/version.ts'
import type { AuditAction } from './audit-events.ts'
import type { RecordedEvent } from './audit-log.ts'

/** The version of the OCSF schema (https://schema.ocsf.io). */
const schemaVersion = '1.3.0'

/** The class of an event and its activity there: File Hosting Activity (6006) for items, Entity Management (3004) for all others. */
const activities: Readonly<Record<AuditAction, readonly [classUid: 6006 | 3004, id: number, name: string]>> =
  {
    upload: [6006, 1, 'Upload'],
    download: [6006, 2, 'Download'],
    edit: [6006, 3, 'Update'],
    delete: [6006, 4, 'Delete'],
    trash: [6006, 4, 'Delete'],
    restore: [6006, 8, 'Restore'],
    purge: [6006, 4, 'Delete'],
    expire: [6006, 4, 'Delete'],
    link: [6006, 12, 'Share'],
    'token-create': [3004, 1, 'Create'],
    'token-rotate': [3004, 1, 'Create'],
    'token-revoke': [3004, 4, 'Delete'],
    'token-restore': [3004, 3, 'Update'],
    'key-create': [3004, 1, 'Create'],
    'key-remove': [3004, 4, 'Delete'],
    'webhook-create': [3004, 1, 'Create'],
    'webhook-set': [3004, 3, 'Update'],
    'webhook-rotate': [3004, 3, 'Update'],
    'webhook-delete': [3004, 4, 'Delete'],
    'bucket-create': [3004, 1, 'Create'],
    'bucket-set': [3004, 3, 'Update'],
    'bucket-delete': [3004, 4, 'Delete'],
    backup: [3004, 2, 'Read'],
    fsck: [3004, 2, 'Read'],
    'downloads-lost': [3004, 99, 'Other'],
    'backup-restore': [3004, 1, 'Create'],
    migrate: [3004, 1, 'Create'],
  }

const classes = {
  6006: { category_uid: 6, category_name: 'Application Activity', class_name: 'File Hosting Activity' },
  3004: { category_uid: 3, category_name: 'Identity & Access Management', class_name: 'Entity Management' },
} as const

/** The event as an object of the Open Cybersecurity Schema Framework (docs/interface.md Y6). `bucket` is the name of its bucket. */
export function toOcsf(event: RecordedEvent, bucket: string | null): object {
  const { action, by, time, uid, target, name, detail } = event
  const [classUid, activityId, activityName] = activities[action]
  return {
    class_uid: classUid,
    ...classes[classUid],
    activity_id: activityId,
    activity_name: activityName,
    type_uid: classUid * 100 + activityId,
    severity_id: 1,
    severity: 'Informational',
    status_id: 1,
    status: 'Success',
    time,
    metadata: {
      version: schemaVersion,
      product: { name: 'Mediabucket', vendor_name: 'Mediabucket', version },
      uid,
      event_code: action,
      ...(by.requestId !== null && { correlation_uid: by.requestId }),
    },
    actor: actorOf(by),
    src_endpoint: by.address === null ? { name: 'mediabucket' } : { ip: by.address },
    ...(classUid === 6006
      ? { file: fileOf(event, bucket) }
      : { entity: { type: entityTypeOf(action), ...entityNames(target, name), data: detail } }),
    unmapped: { action, ...(bucket !== null && { bucket }), ...(classUid === 6006 && { detail }) },
  }
}

function actorOf({ kind, tokenId, subject }: Actor): object {
  if (kind === 'service') return { app_name: 'mediabucket' }
  if (kind === 'operator') return { user: { name: subject ?? 'unknown', type_id: 2, type: 'Admin' } }
  if (tokenId === null && subject === null)
    return { user: { name: 'anonymous', type_id: 0, type: 'Unknown' } }
  // `issuer|subject` of a user, who may have no token of this service.
  const [issuer, ...rest] = subject?.split('|') ?? []
  return {
    user: {
      uid: subject === null ? tokenId : rest.join('|') || subject,
      type_id: subject === null ? 3 : 1,
      type: subject === null ? 'System' : 'User',
      ...(tokenId !== null && { credential_uid: tokenId }),
    },
    ...(subject !== null && rest.length > 0 && { idp: { name: issuer } }),
  }
}

/** Links of several items are one event; `detail.items` has the ids. */
const fileOf = ({ target, name, size, detail }: RecordedEvent, bucket: string | null): object => ({
  ...(target === null
    ? {
        name: `${Array.isArray(detail['items']) ? detail['items'].length : 0} items`,
        type_id: 99,
        type: 'Other',
      }
    : { name: name ?? target, type_id: 1, type: 'Regular File', uid: target }),
  ...(size !== null && { size }),
  ...(bucket !== null && { parent_folder: bucket }),
})

const entityTypeOf = (action: AuditAction): string =>
  /^(token|key|bucket|webhook)(?=-)/.exec(action)?.[0] ?? 'catalog'

/** At least one of both is required. The name of a token may be empty. */
const entityNames = (uid: string | null, name: string | null): object =>
  uid === null ? { name: name ?? 'catalog' } : { uid, ...(name && { name }) }
