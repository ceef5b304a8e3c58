require "action_controller/railtie"

class Shop < Rails::Application
  config.load_defaults 6.1
  config.eager_load = false
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
  config.logger = Logger.new($stderr)
  routes.append do
    root to: "pictures#index"
    post "/", to: "pictures#create"
  end
end

Rails.application.initialize!
run Rails.application
