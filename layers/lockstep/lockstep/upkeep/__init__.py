"""What nobody asks for: orders that expire, holds that were forgotten, commands that were lost."""
