export { Picture } from './picture.ts'
export { UploadZone } from './upload-zone.ts'
export { type Items, useItems } from './use-items.ts'
export { type Uploads, useUpload } from './use-upload.ts'
